"""The heartbeat of a process that holds no attempts: its row in `processes`, renewed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import psycopg

from smithers.process.link import DatabaseAwayError, Link
from smithers.process.wake import Stop
from smithers.sql.processes import beat_process


class Beat:
    """A thread with its own link. `on_expired` is called, once, when the database says that the
    process was declared dead.
    """

    def __init__(
        self,
        link: Link,
        owner: int,
        *,
        lease: timedelta,
        every: timedelta,
        on_expired: Callable[[], None],
    ) -> None:
        self._link = link
        self._owner = owner
        self._lease = lease
        self._every = every.total_seconds()
        self._on_expired = on_expired
        self._stop = Stop()
        self._thread = threading.Thread(target=self._run, name="beat", daemon=True)
        self.acknowledged_at = time.monotonic()
        """When the last beat that was acknowledged was sent, on the monotonic clock."""

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; twice is fine."""
        self._stop.request()
        self._link.abandon()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        pause = self._every
        while not self._stop.wait(pause):
            sent = time.monotonic()
            try:
                with self._link.connection() as connection:
                    current = beat_process(connection, self._owner, self._lease)
            except (DatabaseAwayError, psycopg.Error):
                pause = min(self._every, self._link.pause())
                continue
            if not current:
                self._on_expired()
                break
            self.acknowledged_at = sent
            pause = max(0.0, self._every - (time.monotonic() - sent))
        self._link.close()
