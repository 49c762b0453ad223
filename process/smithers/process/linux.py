"""The two calls of Linux that Python has no function for."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel kill this process when the thread that spawned it ends.

    `parent` is the pid that was the parent at the fork; if it is gone already, this process
    exits at once, since the kernel's signal would never come. Raises OSError.
    """
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def become_subreaper() -> None:
    """Make descendants whose parent ends children of this process. Raises OSError."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    # Loaded here: most processes that import this module never call it.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
