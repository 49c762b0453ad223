"""Who is whose child, as /proc says."""

from __future__ import annotations

from pathlib import Path

from smithers.process.procfs import processes


def hosts_of(pid: int) -> list[int]:
    """The living children of a worker or scheduler that run user code, its nursery left out."""
    return [
        deeper
        for child in children_of(pid)
        for deeper in (children_of(child) if _is_nursery(child) else [child])
    ]


def descendants(pid: int) -> list[int]:
    """All living processes below a worker or one of its hosts, nurseries left out."""
    found = hosts_of(pid)
    return found + [deeper for child in found for deeper in _below(child)]


def children_of(pid: int) -> list[int]:
    """The living children of a process."""
    return [proc.pid for proc in processes().values() if proc.parent == pid and not proc.dead]


def _below(pid: int) -> list[int]:
    found = children_of(pid)
    return found + [deeper for child in found for deeper in _below(child)]


def _is_nursery(pid: int) -> bool:
    """Whether a child of a worker is its nursery, whose forks have the same command line."""
    try:
        return b"nursery_host" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
