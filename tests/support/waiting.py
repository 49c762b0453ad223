"""Waiting for a condition with a deadline: no test sleeps for a duration."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], *, seconds: float = 30.0, pause: float = 0.01) -> T:
    """The first truthy value of `condition`; fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
        time.sleep(pause)
    return value
