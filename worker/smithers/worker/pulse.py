"""The pulse: one thread, one connection, one statement per beat for all attempts of a worker.

Its answer names the attempts that were lost or cancelled. Nothing else runs in this thread: a
late beat costs every attempt its lease.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import psycopg

from smithers.observability.metrics import METRICS
from smithers.process.link import DatabaseAwayError, Link
from smithers.process.service import Service
from smithers.process.wake import Wake
from smithers.sql.errors import ProcessExpired
from smithers.sql.rows import BeatVerdict, Json
from smithers.sql.worker import heartbeat
from smithers.worker.attempt import Attempt, Held, Verdict
from smithers.worker.outcome import token

_LATE_FACTOR = 1.5


class Pulse:
    """Beats until stopped. `on_old` gets attempts that are older than a beat and were not logged
    as started; `on_expired` is called when the process was declared dead.
    """

    def __init__(
        self,
        service: Service,
        held: Held,
        *,
        on_old: Callable[[Sequence[Attempt]], None],
        on_expired: Callable[[], None],
    ) -> None:
        self._service = service
        self._held = held
        self._on_old = on_old
        self._on_expired = on_expired
        self._every = service.heartbeat.total_seconds()
        self.link: Link = service.link("pulse")
        self._wake = Wake()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
        self.acknowledged_at = time.monotonic()

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; twice is fine."""
        self._stopping = True
        self._wake.set()
        self.link.abandon()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        pause = self._every
        while not self._stopping:
            self._wake.wait(pause)
            if self._stopping:
                break
            started = time.monotonic()
            try:
                self._beat()
            except (DatabaseAwayError, psycopg.Error):
                pause = min(self._every, max(0.02, self.link.pause()))
            except Exception as error:  # noqa: BLE001  # without beats everything is lost
                self._service.log.error("beat-failed", reason=repr(error)[:500])
                pause = self._every
            else:
                pause = max(0.0, self._every - (time.monotonic() - started))
        self.link.close()

    def _beat(self) -> None:
        attempts = self._held.all()
        items = [beat_item(attempt) for attempt in attempts]
        with self.link.connection() as connection:
            sent = time.monotonic()
            try:
                verdicts = heartbeat(connection, self._service.owner, items, self._service.lease)
            except ProcessExpired:
                self._on_expired()
                return
        self._acknowledge(attempts, items, verdicts, sent)

    def _acknowledge(
        self,
        attempts: Sequence[Attempt],
        items: Sequence[Json],
        verdicts: Sequence[BeatVerdict],
        sent: float,
    ) -> None:
        if sent - self.acknowledged_at > _LATE_FACTOR * self._every:
            METRICS.late_beats.add()
        self.acknowledged_at = sent
        for verdict in verdicts:
            self._end(verdict)
        for attempt, item in zip(attempts, items, strict=True):
            if attempt.verdict is not Verdict.LOST:
                attempt.acknowledged_at = sent
                attempt.stored_beat = item.get("beat", attempt.stored_beat)
                if attempt.resume():
                    self._service.log.info("attempt-resumed", **token(attempt.task))
        old = [
            attempt
            for attempt in attempts
            if not attempt.start_logged and sent - attempt.claimed_at >= self._every
        ]
        if old:
            self._on_old(old)

    def _end(self, row: BeatVerdict) -> None:
        attempt = self._held.get(row)
        if attempt is None:
            return
        if attempt.end(Verdict(row.verdict)):
            self._service.log.warning("attempt-ended", verdict=row.verdict, **token(attempt.task))
            if row.verdict == "lost":
                METRICS.fenced.add()


def beat_item(attempt: Attempt) -> Json:
    """What a beat says of one attempt: its body's data only when there is news."""
    item = token(attempt.task)
    if attempt.beat is not attempt.stored_beat:
        item["beat"] = attempt.beat
    return item
