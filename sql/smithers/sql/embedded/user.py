"""Which user runs the server, and how its programs are started as that user."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded import launch
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


def environment() -> dict[str, str]:
    """What the server's programs get to know: nothing that could be a secret."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "LC_ALL": "C", "LANG": "C"}


def run(line: Sequence[str], name: str, log: Path, *, stdin: bytes = b"") -> None:
    """Run a command line to its end; what it says goes to `log`. Raises `DatabaseUnavailable`."""
    try:
        with log.open("ab") as out:
            subprocess.run(
                line,
                input=stdin,
                stdout=out,
                stderr=out,
                env=environment(),
                timeout=RUN_SECONDS,
                check=True,
            )
    except (OSError, subprocess.SubprocessError) as exc:
        raise DatabaseUnavailable(
            f"{name} failed: {exc}",
            details={"log": str(log), "cause": last_words(log)},
            hint=f"see the end of {log}",
        ) from exc


def last_words(log: Path) -> str:
    """The last lines of a log, in which a program says why it ended."""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 2048))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-6:])
