"""The slots: each a thread that takes an attempt, runs it to its end, and hands on the result."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable

from smithers.worker.attempt import Attempt, Verdict
from smithers.worker.outcome import WORKER_UNABLE, Cancelled, Dropped, Outcome, Released, outcome_of
from smithers.worker.pool import Pool
from smithers.workflow.attempts import AttemptError

Done = Callable[[Attempt, Outcome], None]


class Slots:
    """Runs attempts, as many at a time as there are threads; more wait in line."""

    def __init__(
        self, pool: Pool, *, slots: int, on_done: Done, on_free: Callable[[], None]
    ) -> None:
        self.size = slots
        self.mean_seconds: float | None = None
        """How long a slot is taken by one attempt, lately; None before the first."""
        self._pool = pool
        self._on_done = on_done
        self._on_free = on_free
        self._line: queue.SimpleQueue[Attempt | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._in_hand = 0
        self._threads = [
            threading.Thread(target=self._run, name=f"slot-{number}", daemon=True)
            for number in range(slots)
        ]

    def start(self) -> None:
        """Begin to take attempts."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the threads end after what is in hand."""
        for _ in self._threads:
            self._line.put(None)

    def put(self, attempts: Iterable[Attempt]) -> None:
        """Have these run."""
        for attempt in attempts:
            with self._lock:
                self._in_hand += 1
            self._line.put(attempt)

    @property
    def in_hand(self) -> int:
        """How many attempts run or wait in line."""
        return self._in_hand

    def give_back_waiting(self) -> int:
        """Release those that wait in line; returns how many."""
        released = 0
        while True:
            try:
                attempt = self._line.get_nowait()
            except queue.Empty:
                return released
            if attempt is not None:
                released += 1
                attempt.end(Verdict.RELEASED)
                self._finish(attempt, early_outcome(attempt))

    def _run(self) -> None:
        while (attempt := self._line.get()) is not None:
            started = time.monotonic()
            outcome = self._outcome(attempt)
            if attempt.verdict is None:
                self._note(time.monotonic() - started)
            self._finish(attempt, outcome)

    def _outcome(self, attempt: Attempt) -> Outcome:
        if attempt.verdict is not None:
            return early_outcome(attempt)
        try:
            executor = self._pool.take(attempt)
        except AttemptError as error:
            if attempt.verdict is not None:
                return early_outcome(attempt)
            return outcome_of(error, attempt.task)
        try:
            return executor.run(attempt)
        except Exception as error:  # noqa: BLE001  # one attempt may not cost a slot
            executor.retire()
            return outcome_of(
                AttemptError(WORKER_UNABLE, f"the worker can't run it: {error!r}"), attempt.task
            )
        finally:
            self._pool.give_back(executor)

    def _finish(self, attempt: Attempt, outcome: Outcome) -> None:
        self._on_done(attempt, outcome)
        with self._lock:
            self._in_hand -= 1
        self._on_free()

    def _note(self, seconds: float) -> None:
        with self._lock:
            mean = self.mean_seconds
            self.mean_seconds = seconds if mean is None else mean + 0.2 * (seconds - mean)


def early_outcome(attempt: Attempt) -> Outcome:
    """How an attempt ends that was ended before it began."""
    match attempt.verdict:
        case Verdict.LOST:
            return Dropped()
        case Verdict.CANCELLED:
            return Cancelled()
        case _:
            return Released()
