"""A thread that hears NOTIFY and wakes the process. Without it polling alone is right too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import psycopg

from smithers.process.link import DatabaseAwayError, Link
from smithers.process.wake import Stop
from smithers.sql.notify import Channel, listen, notifications

_ROUND_SECONDS = 60.0


class Listener:
    """Listens on its own link until told to stop; `live` says that it hears."""

    def __init__(
        self, link: Link, channels: Sequence[Channel], on_notify: Callable[[str, str], None]
    ) -> None:
        self._link = link
        self._channels = channels
        self._on_notify = on_notify
        self._stop = Stop()
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)
        self.live = False

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; twice is fine."""
        self._stop.request()
        self._link.abandon()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._stop:
            try:
                self._listen()
            except (DatabaseAwayError, psycopg.Error):
                self.live = False
                self._stop.wait(self._link.pause())
        self.live = False
        self._link.close()

    def _listen(self) -> None:
        with self._link.connection() as connection:
            listen(connection, self._channels)
            self.live = True
            # What was sent before LISTEN took effect was not heard.
            self._on_notify("", "")
            while not self._stop:
                for channel, payload in notifications(connection, seconds=_ROUND_SECONDS):
                    self._on_notify(channel, payload)
