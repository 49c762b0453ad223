"""The watch: suspends attempts whose lease may run out because the database is silent.

It looks at clocks only, so a statement that hangs doesn't keep it. A database that is away
kills no agent: attempts stand still until the pulse is answered, and end after fifteen minutes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from smithers.observability.metrics import METRICS
from smithers.process.link import Link
from smithers.process.service import Service
from smithers.process.wake import Stop
from smithers.worker.attempt import Attempt, Held, Verdict
from smithers.worker.outcome import token

PATIENCE_SECONDS: Final = 15 * 60.0


class Watch:
    """A thread that compares each attempt's last acknowledged beat with the clock."""

    def __init__(
        self,
        service: Service,
        held: Held,
        links: Sequence[Link],
        *,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._service = service
        self._held = held
        self._links = links
        self._patience = patience
        self._suspend_after = service.settings.suspend_seconds
        self._hang_after = service.settings.lease_seconds / 3
        self._every = min(0.25, service.settings.lease_seconds / 60)
        self._stop = Stop()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; twice is fine."""
        self._stop.request()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._stop.wait(self._pause()):
            self.look()

    def look(self) -> None:
        """Suspend and end what is due, and give up on statements that hang."""
        now = time.monotonic()
        for attempt in self._held.all():
            self._look_at(attempt, now)
        for link in self._links:
            since = link.busy_since
            if since is not None and now - since > self._hang_after:
                link.cut()

    def _look_at(self, attempt: Attempt, now: float) -> None:
        since = attempt.suspended
        if since is not None:
            if now - since > self._patience and attempt.end(Verdict.LOST):
                self._service.log.warning("attempt-given-up", **token(attempt.task))
        elif now - attempt.acknowledged_at > self._suspend_after and attempt.runs:
            METRICS.suspensions.add()
            self._service.log.warning("attempt-suspended", **token(attempt.task))
            attempt.suspend()

    def _pause(self) -> float:
        """Seconds until something can be due; never long, since attempts come and go."""
        attempts = self._held.all()
        if not attempts:
            return max(self._every, self._suspend_after / 4)
        due = min(attempt.acknowledged_at for attempt in attempts) + self._suspend_after
        return max(self._every, min(due - time.monotonic(), self._suspend_after / 4))
