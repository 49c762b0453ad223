"""SIGTERM and SIGINT ask a process to end; handlers are put back afterwards."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from smithers.process.wake import Stop

STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signals(stop: Stop) -> Generator[None, None, None]:
    """Turn the first SIGTERM or SIGINT into "drain" and the second into "hurry".

    SIGPIPE and SIGHUP are ignored meanwhile: a process that lost its terminal or its log
    reader goes on. Only the main thread may enter.
    """

    def on_stop(_number: int, _frame: FrameType | None) -> None:
        stop.request()

    before = {number: signal.signal(number, on_stop) for number in STOPPING}
    before[signal.SIGPIPE] = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # Not SIG_IGN: that would be inherited by every program that a task starts.
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, _ignore)
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: a handler that Python did not install can't be named, so the default.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing."""
