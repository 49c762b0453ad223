"""The runs of one code version that wait for a lane."""

from __future__ import annotations

import threading
from collections import deque
from time import monotonic

from smithers.scheduler.advance import OwnedRun


class Waiting:
    """A queue that any number of lanes take from; safe for any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._runs: deque[tuple[OwnedRun, float]] = deque()
        self._closing = 0

    def put(self, run: OwnedRun) -> None:
        """Add a run at the end."""
        with self._changed:
            self._runs.append((run, monotonic()))
            self._changed.notify()

    def take(self) -> OwnedRun | None:
        """Wait for a run; None asks the lane that called to end."""
        with self._changed:
            while not self._runs and not self._closing:
                self._changed.wait()
            if self._closing:
                self._closing -= 1
                return None
            return self._runs.popleft()[0]

    def close_one(self) -> None:
        """Ask one lane to end, as soon as it has done what it is busy with."""
        with self._changed:
            self._closing += 1
            self._changed.notify()

    def clear(self) -> list[OwnedRun]:
        """Take out all runs that no lane has begun."""
        with self._changed:
            runs = [run for run, _ in self._runs]
            self._runs.clear()
            return runs

    def __len__(self) -> int:
        return len(self._runs)

    def oldest_wait(self) -> float:
        """Return the seconds that the first run has been waiting, 0 without one."""
        with self._changed:
            return monotonic() - self._runs[0][1] if self._runs else 0.0
