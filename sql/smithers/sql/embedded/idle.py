"""Whether a server stops when nobody uses it, and whether it sleeps for that reason.

One file says it, `<home>/pg.idle`: the seconds (0: never), then `awake` or `asleep`. Its
watcher holds a lock on it as long as it lives, so that there can't be two; the file is
therefore written in place and never removed. It is written only under the server's own lock.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from smithers.sql.embedded import launch
from smithers.sql.embedded.place import Place

WATCHER = "smithers.sql.embedded.watcher"
PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
"""All that the watcher gets to know of our environment: nothing that could be a secret."""


@dataclass(frozen=True, slots=True)
class Idle:
    """After how many seconds without a client the server stops, 0 for never; and if it has."""

    seconds: float = 0.0
    asleep: bool = False


def idle_file(place: Place) -> Path:
    """Where it is written."""
    return place.home / "pg.idle"


def read_idle(place: Place) -> Idle:
    """What was written last; the default where nothing was."""
    try:
        seconds, state = idle_file(place).read_text("ascii").split()
        return Idle(float(seconds), state == "asleep")
    except (OSError, ValueError):
        return Idle()


def write_idle(place: Place, idle: Idle) -> None:
    """Remember it. Call it under the server's lock."""
    if idle == read_idle(place):
        return
    handle = os.open(idle_file(place), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        text = f"{idle.seconds:g} {'asleep' if idle.asleep else 'awake'}\n".encode()
        os.pwrite(handle, text, 0)
        os.ftruncate(handle, len(text))
    finally:
        os.close(handle)


def is_watched(place: Place) -> bool:
    """Whether a watcher lives."""
    with suppress(FileNotFoundError), idle_file(place).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def is_as_wanted(place: Place, wanted: float | None) -> bool:
    """Whether a running server will be stopped as it was asked for, None for as it was before."""
    seconds = read_idle(place).seconds
    return wanted in (None, seconds) and (seconds == 0 or is_watched(place))


def watch(place: Place) -> None:
    """Start a detached watcher, unless there is none to start or one lives already.

    It runs as we do, since it opens our files. Raises OSError, SubprocessError.
    """
    if read_idle(place).seconds == 0 or is_watched(place):
        return
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    python = [sys.executable, "-P", "-m", WATCHER, str(place.home)]
    with place.log.open("ab") as log:
        subprocess.run(
            [sys.executable, "-I", "-S", launch.__file__, "--detach", *python],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env={**kept, "LC_ALL": "C"},
            check=True,
        )
