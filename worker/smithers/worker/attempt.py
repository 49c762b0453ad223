"""The attempts that a worker holds, and what its threads tell each other about them.

The slot thread runs an attempt and is the one that kills its tree; the pulse says what became
of its token; the watch suspends it. Whoever comes first decides how it ends.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from smithers.process.child import Child
from smithers.process.wake import Wake
from smithers.sql import codec
from smithers.sql.rows import BeatVerdict, ClaimedTask
from smithers.worker.task import BEAT_BYTES

Token = tuple[str, str, int, int, UUID]


class Verdict(StrEnum):
    """Why an attempt ends before its body does."""

    LOST = "lost"
    CANCELLED = "cancelled"
    RELEASED = "released"
    OVERFLOW = "overflow"


class Retirable(Protocol):
    """An executor, as far as an attempt needs to know it."""

    def retire(self) -> None:
        """Run no further attempt."""


class Attempt:
    """One claimed task in this worker's hands. All methods may be called by any thread."""

    def __init__(self, task: ClaimedTask, *, acknowledged_at: float) -> None:
        self.task = task
        self.token: Token = token_of(task)
        self.claimed_at = time.monotonic()
        self.acknowledged_at = acknowledged_at
        """When the last statement that renewed the lease was sent, on the monotonic clock."""
        self.start_logged = False
        self.body_ended = False
        self.verdict: Verdict | None = None
        self.beat: object = None
        self.stored_beat: object = None
        """What the lease's row holds of it."""
        self.beat_at = 0.0
        """When the body last said that it is alive, on the monotonic clock."""
        self.resumed_at = 0.0
        self.wake = Wake()
        self._lock = threading.RLock()
        self._child: Child | None = None
        self._executor: Retirable | None = None
        self._suspended_at: float | None = None
        self._suspended_for = 0.0

    def attach(self, child: Child, executor: Retirable) -> None:
        """The body is about to run in this child."""
        with self._lock:
            self._child = child
            self._executor = executor
            if self._suspended_at is not None:
                child.stop()
            if self.verdict is not None:
                child.signal(signal.SIGKILL)

    def detach(self) -> None:
        """The body has ended; the child may go on to another attempt."""
        with self._lock:
            self._child = None
            self.body_ended = True

    def end(self, verdict: Verdict) -> bool:
        """Decide that the attempt ends; false when something else was decided before.

        The slot thread kills the tree; only the root is killed here, without waiting.
        """
        with self._lock:
            if self.verdict is not None and not (verdict is Verdict.LOST != self.verdict):
                return False
            self.verdict = verdict
            if self._child is not None:
                self._child.signal(signal.SIGKILL)
            elif verdict is Verdict.LOST and self._executor is not None:
                # Its body has returned, but what it left behind must not outlive the token.
                self._executor.retire()
            self.wake.set()
            return True

    def note_beat(self, data: object) -> None:
        """The body said that it is alive."""
        self.beat_at = time.monotonic()
        with suppress(codec.BadValue):  # user code can write anything into its channel
            if data is not None and len(codec.encode(data)) <= BEAT_BYTES:
                self.beat = data

    @property
    def runs(self) -> bool:
        """Whether its body runs, or is yet to begin."""
        return self.verdict is None and not self.body_ended

    @property
    def suspended(self) -> float | None:
        """Since when, on the monotonic clock, the attempt stands still; None when it runs."""
        return self._suspended_at

    def suspend(self) -> None:
        """Stop the whole tree until `resume`."""
        with self._lock:
            if self._suspended_at is None:
                self._suspended_at = time.monotonic()
                if self._child is not None:
                    self._child.stop()

    def resume(self) -> bool:
        """Let a suspended tree go on; false when it wasn't suspended."""
        with self._lock:
            if self._suspended_at is None:
                return False
            self.resumed_at = time.monotonic()
            self._suspended_for += self.resumed_at - self._suspended_at
            self._suspended_at = None
            if self._child is not None:
                self._child.resume()
            self.wake.set()
            return True

    def stood_still(self) -> float:
        """Seconds that the attempt has been suspended, all told: they count for no deadline."""
        with self._lock:
            now = 0.0 if self._suspended_at is None else time.monotonic() - self._suspended_at
            return self._suspended_for + now

    def close(self) -> None:
        """Give descriptors back; nothing more will be said about the attempt."""
        with self._lock:  # a wake that is being set must not be somebody else's descriptor
            self.wake.close()


class Held:
    """All attempts of a worker from claim to acknowledged end: what the pulse beats for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: dict[Token, Attempt] = {}

    def add(self, attempts: Iterable[Attempt]) -> None:
        """These were claimed."""
        with self._lock:
            self._attempts |= {attempt.token: attempt for attempt in attempts}

    def remove(self, attempt: Attempt) -> None:
        """The end of this one is settled; twice is fine."""
        with self._lock:
            self._attempts.pop(attempt.token, None)
        attempt.close()

    def get(self, verdict: BeatVerdict) -> Attempt | None:
        """The attempt that a beat's answer is about, None when it has ended meanwhile."""
        with self._lock:
            return self._attempts.get(token_of(verdict))

    def all(self) -> list[Attempt]:
        """What is held now."""
        with self._lock:
            return list(self._attempts.values())

    def __len__(self) -> int:
        return len(self._attempts)


def token_of(row: ClaimedTask | BeatVerdict) -> Token:
    """The key and token in a row."""
    return (row.run_id, row.node_id, row.iteration, row.attempt, row.claim_id)
