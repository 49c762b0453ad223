"""When a body has had its time. Time for which it was suspended doesn't count."""

from __future__ import annotations

import time
from typing import Final

from smithers.process.output import Output
from smithers.worker.attempt import Attempt
from smithers.worker.outcome import HEARTBEAT_TIMEOUT, TASK_TIMEOUT
from smithers.workflow.attempts import AttemptError

AGENT_SILENCE_SECONDS: Final = 600.0
"""An agent that prints nothing for this long is ended, unless its task says otherwise."""

LOADING_SECONDS: Final = 60.0
"""What a task with a timeout may take besides for its executor to start and import the code."""


class Deadlines:
    """The limits of one attempt."""

    def __init__(self, attempt: Attempt, output: Output) -> None:
        descriptor = attempt.task.descriptor
        self._attempt = attempt
        self._output = output
        self._started = time.monotonic()
        self._loading = True
        self._before = 0.0
        self._is_agent = descriptor.get("kind") == "agent"
        self._timeout: float | None = descriptor.get("timeout")
        self._silence: float | None = descriptor.get("heartbeat_timeout")
        if self._silence is None and self._is_agent:
            self._silence = AGENT_SILENCE_SECONDS

    def begin(self) -> None:
        """The executor is there and the code is loaded: the body's own time begins."""
        self._started = time.monotonic()
        self._before = self._attempt.stood_still()
        self._loading = False

    def left(self) -> float | None:
        """Seconds until the next limit, None without any."""
        if self._attempt.suspended is not None:
            return None  # `resume` wakes the waiter
        limits = [left for left in (self._task_left(), self._silence_left()) if left is not None]
        return max(0.0, min(limits)) if limits else None

    def missed(self) -> AttemptError | None:
        """The limit that has passed, None while there is time."""
        if self._attempt.suspended is not None:
            return None
        left = self._task_left()
        if left is not None and left <= 0:
            return AttemptError(
                TASK_TIMEOUT,
                f"it took longer than {self._timeout:g} s",
                {"timeout": self._timeout},
            )
        left = self._silence_left()
        if left is not None and left <= 0:
            what = "any output" if self._is_agent else "a heartbeat"
            return AttemptError(
                HEARTBEAT_TIMEOUT,
                f"it went {self._silence:g} s without {what}",
                {"heartbeat_timeout": self._silence},
            )
        return None

    def _task_left(self) -> float | None:
        if self._timeout is None:
            return None
        stood_still = self._attempt.stood_still() - self._before
        allowed = self._timeout + (LOADING_SECONDS if self._loading else 0.0)
        return allowed - (time.monotonic() - self._started - stood_still)

    def _silence_left(self) -> float | None:
        if self._silence is None or self._loading:
            return None
        # A body that stood still gets the whole time again.
        since = max(self._started, self._attempt.beat_at, self._attempt.resumed_at)
        if self._is_agent:
            since = max(since, self._output.active_at)
        return self._silence - (time.monotonic() - since)
