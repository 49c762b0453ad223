"""Ctrl-C and its kin: the first asks to leave in order, the second to hurry."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from smithers.process.wake import Stop, Wake

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Interrupts:
    """What has been asked; `wake` is set at each request."""

    wake: Wake = field(default_factory=Wake)
    stop: Stop = field(default_factory=Stop)
    number: int | None = None

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that a signal ended."""
        return 128 + (self.number or signal.SIGINT)

    def hurried(self) -> bool:
        """Whether it was asked twice."""
        return self.stop.hurried


@contextmanager
def interrupts() -> Generator[Interrupts]:
    """Note SIGINT, SIGTERM and SIGHUP instead of dying of them. Main thread only."""
    state = Interrupts()
    state.stop.also_wake(state.wake)

    def note(number: int, _frame: FrameType | None) -> None:
        state.number = state.number or number
        state.stop.request()

    before = {number: signal.signal(number, note) for number in _ASKING}
    try:
        yield state
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
