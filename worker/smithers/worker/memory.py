"""Whether the kernel has killed something of ours for want of memory."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_HOST = Path("/proc/vmstat")
"""Counts the kills on the whole host: better than nothing where there are no control groups."""


def oom_kills() -> int:
    """How many processes of this process's control group the kernel has killed so far.

    0 where that can't be read; only growth means something.
    """
    files = [path for path in _files() if path.exists()]
    return sum(_count(path) for path in files or [_HOST])


def _files() -> list[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    files: list[Path] = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            files.append(_ROOT / path.lstrip("/") / "memory.events")
        elif "memory" in controllers.split(","):
            files.append(_ROOT / "memory" / path.lstrip("/") / "memory.oom_control")
    return files


def _count(path: Path) -> int:
    try:
        words = path.read_text().split()
    except OSError:
        return 0
    pairs = dict(zip(words[::2], words[1::2], strict=False))
    return int(pairs.get("oom_kill", "0"))
