"""Which user runs the server, and how its programs are started as that user."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded import launch
from smithers.sql.embedded.complaint import complaint
from smithers.sql.embedded.place import Place

RUN_SECONDS = 120
CANDIDATES = ("smithers", "postgres", "nobody")


@dataclass(frozen=True, slots=True)
class ServerUser:
    """The user that owns the data directory; `drop` says that we must become it first."""

    uid: int
    gid: int
    name: str
    drop: bool


def server_user(place: Place) -> ServerUser:
    """Ourselves, or, since Postgres won't run as root, an unprivileged user.

    That is the owner of the data directory, or of the home folder; else the first of
    `CANDIDATES` that exists. Raises `DatabaseUnavailable`.
    """
    if os.geteuid() != 0:
        return _entry(os.geteuid(), drop=False)
    for path in (place.data, place.home):
        if path.exists() and path.stat().st_uid != 0:
            return _entry(path.stat().st_uid, drop=True)
    for name in CANDIDATES:
        try:
            return _entry(pwd.getpwnam(name).pw_uid, drop=True)
        except KeyError:
            continue
    raise DatabaseUnavailable(
        "Postgres won't run as root, and there is no unprivileged user to run it as",
        details={"looked_for": list(CANDIDATES)},
        hint="add a user named smithers, work as another user, or set SMITHERS_DATABASE_URL",
    )


def _entry(uid: int, *, drop: bool) -> ServerUser:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError as exc:
        raise DatabaseUnavailable(
            f"user {uid} has no name, and Postgres needs one",
            details={"uid": uid},
            hint="add the user to /etc/passwd, or set SMITHERS_DATABASE_URL",
        ) from exc
    return ServerUser(uid, entry.pw_gid, entry.pw_name, drop)


def command(
    user: ServerUser, program: Sequence[str | Path], *options: str, reach: Sequence[Path] = ()
) -> list[str]:
    """The command line that starts `program` as `user`, able to reach the paths in `reach`."""
    line = [sys.executable, "-I", "-S", launch.__file__, *options]
    if user.drop:
        line += ["--user", f"{user.uid}:{user.gid}"]
        if not all(_open_to_all(path) for path in reach):
            line.append("--read-anywhere")
    return [*line, *(str(part) for part in program)]


def _open_to_all(path: Path) -> bool:
    """Whether every folder above `path` may be searched by anybody."""
    return all(parent.stat().st_mode & 0o001 for parent in path.absolute().resolve().parents)


def environment(bindir: Path) -> dict[str, str]:
    """What the programs of that folder get to know: nothing that could be a secret."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    icu = bindir.parent / "share" / "icu"  # a wheel for musl brings it along as files
    data = {"ICU_DATA": str(icu)} if icu.is_dir() else {}
    return {**kept, **data, "LC_ALL": "C", "LANG": "C"}


def run(line: Sequence[str], program: Path, log: Path, *, stdin: bytes = b"") -> None:
    """Run a command line to its end; what it says goes to `log`. Raises `DatabaseUnavailable`."""
    try:
        done = subprocess.run(
            line,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(program.parent),
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise DatabaseUnavailable(
            f"{program.name} took longer than {RUN_SECONDS} s",
            details={"log": str(log)},
            hint="see whether the disk or the machine is overloaded, then try again",
        ) from exc
    with suppress(OSError), log.open("ab") as out:  # on a full disk that is lost, the error isn't
        out.write(done.stdout)
    if done.returncode != 0:
        cause = complaint(done.stdout)
        raise DatabaseUnavailable(
            f"{program.name} failed: {cause}",
            details={"log": str(log), "cause": cause},
            hint=f"see the end of {log}",
        )


def last_words(log: Path) -> str:
    """The last lines of a log, in which a program says why it ended."""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 2048))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-6:])
