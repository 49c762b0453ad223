"""What the system knows about a pid. A pid alone proves nothing: it may be a zombie or reused."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Literal

State = Literal["running", "zombie", "gone"]
PROC = Path("/proc")


def process_state(pid: int) -> State:
    """Whether a process with that pid runs, has ended without being reaped, or isn't there."""
    letter = _state_letter(pid)
    if letter is None:
        return "gone"
    return "zombie" if letter in "ZX" else "running"


def _state_letter(pid: int) -> str | None:
    if (PROC / "self").exists():
        try:
            return (PROC / str(pid) / "stat").read_text("latin-1").rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return None
    said = _ps(pid, "stat=")
    return said[:1] or None


def _ps(pid: int, columns: str) -> str:
    """What ps says of a process, where there is no /proc; empty for none."""
    return subprocess.run(
        ["ps", "-ww", "-o", columns, "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()


def serves(pid: int, data: Path) -> bool:
    """Whether that process is a running Postgres of this data directory.

    Every Postgres process works in its data directory, wherever that was moved since.
    """
    if process_state(pid) != "running":
        return False
    if (PROC / "self").exists():
        try:
            return (PROC / str(pid) / "cwd").samefile(data)
        except OSError:
            return False
    return "postgres" in (said := _ps(pid, "command=")) and str(data) in said


def anybody_serves(data: Path) -> bool:
    """Whether any process works in that data directory (always False without /proc)."""
    return any(
        serves(int(entry.name), data) for entry in PROC.glob("[0-9]*") if entry.name.isdecimal()
    )


def wait_until_gone(pid: int, seconds: float) -> bool:
    """Wait until no process with that pid runs; False when it still does after `seconds`."""
    deadline = time.monotonic() + seconds
    while process_state(pid) == "running":
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
