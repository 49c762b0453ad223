"""Make `/proc/PID/cmdline` and `/proc/PID/environ` of a fork say what exec would have said.

The kernel shows the memory where exec put the words and the environment. A fork keeps its
parent's, so that `ps` would mislead, and the marks by which descendants are found would be
missing; both are written over it here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

ROOM_VARIABLE: Final = "SMITHERS_NURSERY_ROOM"
ROOM_BYTES: Final = 4096
# proc(5): fields 48 to 51, counted from the third.
_ARG_START, _ARG_END, _ENV_START, _ENV_END = 45, 46, 47, 48


def show_exec(words: Sequence[str], environ: Mapping[str, str], first: str | None) -> None:
    """Write `words` and `environ` over what exec left, the variable `first` before all others.

    What doesn't fit is cut off, and nothing of the old stays. Raises OSError.
    """
    stat = Path("/proc/self/stat").read_bytes()
    fields = stat[stat.rindex(b")") + 2 :].split()
    _fill(int(fields[_ARG_START]), int(fields[_ARG_END]), words)
    names = sorted(environ, key=lambda name: name != first)
    entries = (f"{name}={environ[name]}" for name in names)
    _fill(int(fields[_ENV_START]), int(fields[_ENV_END]), entries)


def _fill(start: int, end: int, entries: Iterable[str]) -> None:
    size = end - start
    if size <= 0:
        return
    block = b""
    for entry in entries:
        text = entry.encode("utf-8", "surrogateescape") + b"\0"
        if len(block) + len(text) > size:
            break
        block += text
    ctypes.memset(start, 0, size)
    ctypes.memmove(start, block, len(block))
