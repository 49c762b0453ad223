"""Lock files that a server left behind when it was killed or its machine went down."""

from __future__ import annotations

from pathlib import Path

from smithers.sql.embedded.place import Place
from smithers.sql.embedded.processes import anybody_serves, process_state

NOBODY = 2_147_483_646
"""A pid that no system gives out."""


def read_pid(place: Place) -> int | None:
    """The pid in postmaster.pid, or None where there is none to read."""
    return _first_number(place.pid_file)


def _first_number(path: Path) -> int | None:
    try:
        return int(path.read_bytes().split(b"\n", 1)[0])
    except (OSError, ValueError):
        return None


def release_stale_locks(place: Place) -> None:
    """Make Postgres see that the owner of its lock files is dead. Call it only when it is.

    Postgres takes any process with that pid for the owner: a zombie, or after a reboot a
    stranger. The files are kept, and only the pid is replaced, since postmaster.pid also
    names the shared memory by which Postgres itself makes sure that no child of the old server
    is left; without the file two servers could write to one data directory.
    """
    for path in (place.pid_file, place.socket_lock):
        pid = _first_number(path)
        if pid is not None and process_state(pid) != "gone":
            _replace_pid(path)
    # Empty after a power cut: it names no memory, so look for the children ourselves.
    unreadable = place.pid_file.exists() and _first_number(place.pid_file) is None
    if unreadable and not anybody_serves(place.data):
        place.pid_file.unlink(missing_ok=True)
    if place.socket_lock.exists() and _first_number(place.socket_lock) is None:
        place.socket_lock.unlink(missing_ok=True)


def _replace_pid(path: Path) -> None:
    """In place, so that owner and mode stay."""
    with path.open("r+b") as file:
        _, _, rest = file.read().partition(b"\n")
        file.seek(0)
        file.write(b"%d\n" % NOBODY + rest)
        file.truncate()
