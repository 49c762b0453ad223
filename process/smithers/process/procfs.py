"""What /proc says about the processes of this host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Proc:
    """One process. `started` (clock ticks since boot) tells two uses of a pid apart."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    started: int

    @property
    def dead(self) -> bool:
        """True for a zombie: it runs no more, but nobody has reaped it."""
        return self.state in "ZX"

    @property
    def stopped(self) -> bool:
        """True while SIGSTOP (or a tracer) holds it."""
        return self.state in "Tt"


def processes() -> dict[int, Proc]:
    """All processes, by pid; those that end meanwhile are left out."""
    return {proc.pid: proc for proc in _all()}


def process(pid: int) -> Proc | None:
    """One process, or None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  # a hot path
            text = file.read()
    except OSError:
        return None
    # The name in parentheses may hold anything, also spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    return Proc(
        pid=pid,
        state=fields[0].decode(),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started=int(fields[19]),
    )


def environment(pid: int) -> bytes:
    """The environment that exec gave the process, NUL-separated; empty if it can't be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123  # a hot path
            return file.read()
    except OSError:
        return b""


def variable(environ: bytes, name: str) -> str | None:
    """The value of one variable in what `environment` returned."""
    wanted = name.encode() + b"="
    start = 0 if environ.startswith(wanted) else environ.find(b"\0" + wanted) + 1
    if not environ.startswith(wanted, start):
        return None
    end = environ.find(b"\0", start)
    value = environ[start + len(wanted) : end if end >= 0 else len(environ)]
    return value.decode("utf-8", "surrogateescape")


def memory_bytes(pid: int) -> int:
    """The resident set of a process, in bytes; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123  # a hot path
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _all() -> Iterator[Proc]:
    for name in os.listdir("/proc"):  # noqa: PTH208  # Path.iterdir costs four times as much
        if name.isdigit() and (proc := process(int(name))) is not None:
            yield proc
