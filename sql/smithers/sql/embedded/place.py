"""Where an embedded server keeps its things.

<home>/pg        the data directory, 0700, owned by the server's user; the socket is in it
<home>/pg.lock   held while somebody makes, starts or stops the server
<home>/pg.log    what the server says
<home>/pg.idle   after how long without a client it stops; see `idle`
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from smithers.sql.database_errors import DatabaseUnavailable

ROLE = "smithers"
DATABASE = "smithers"
PORT = 5432
LONGEST_SOCKET = 103
"""Bytes of a socket's path; Linux has room for 107, macOS for 103."""


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of the embedded server of one home folder."""

    home: Path

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.home / "pg"

    @property
    def lock(self) -> Path:
        """The file that is locked while the server is made, started or stopped."""
        return self.home / "pg.lock"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.home / "pg.log"

    @property
    def pid_file(self) -> Path:
        """Postgres's own; line 1 is the pid, line 7 the shared memory."""
        return self.data / "postmaster.pid"

    @property
    def socket_dir(self) -> Path:
        """The data directory, or a private folder in /tmp when that path is too long.

        Nor can the path of a socket hold a comma: libpq takes it for a list of hosts.
        """
        socket = os.fsencode(self.data / f".s.PGSQL.{PORT}")
        if len(socket) <= LONGEST_SOCKET and b"," not in socket:
            return self.data
        digest = hashlib.sha256(os.fsencode(self.data.resolve())).hexdigest()[:20]
        return Path("/tmp") / f"smithers-{digest}"  # noqa: S108 - checked by own_socket_dir

    @property
    def socket_lock(self) -> Path:
        """Postgres's lock of its socket, with a pid on line 1."""
        return self.socket_dir / f".s.PGSQL.{PORT}.lock"

    @property
    def major(self) -> int | None:
        """The version that made the data directory, or None when there is none yet.

        Raises `DatabaseUnavailable` for a folder that says something else.
        """
        try:
            text = (self.data / "PG_VERSION").read_text("ascii", "replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not text.isdecimal():
            raise DatabaseUnavailable(
                f"{self.data} is no data directory that can be used: PG_VERSION says {text[:20]!r}",
                details={"data": str(self.data)},
                hint="restore the folder from a copy, or move it away to begin with a new one",
            )
        return int(text)

    def dsn(self, database: str = DATABASE) -> str:
        """The URL of a database on this server."""
        host = quote(os.fsencode(self.socket_dir), safe="")
        return f"postgresql://{ROLE}@/{quote(database, safe='')}?host={host}&port={PORT}"

    def refuse_if_of_another_user(self) -> None:
        """Raise `DatabaseUnavailable` if the data directory isn't ours to open."""
        if not self.data.exists() or os.geteuid() in (0, owner := self.data.stat().st_uid):
            return
        raise DatabaseUnavailable(
            f"{self.data} belongs to another user",
            details={"owner": owner, "uid": os.geteuid(), "data": str(self.data)},
            hint="work as that user, or set SMITHERS_HOME to another folder",
        )

    def prepare_home(self) -> None:
        """Make the home folder, out of git's sight. Raises `DatabaseUnavailable`."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            ignore = self.home / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", "ascii")
        except OSError as exc:
            raise DatabaseUnavailable(
                f"the folder {self.home} can't be made: {exc.strerror}",
                details={"home": str(self.home), "cause": str(exc)},
                hint="set SMITHERS_HOME to a folder that can be written",
            ) from exc

    def own_socket_dir(self, uid: int, gid: int) -> None:
        """Make sure that the socket's folder is private to `uid`, or raise `DatabaseUnavailable`.

        /tmp is open to everybody, so a folder that is already there is used only if it is
        a real folder of the server's user that nobody else can enter.
        """
        folder = self.socket_dir
        if folder == self.data:
            return
        try:
            folder.mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(folder, uid, gid, follow_symlinks=False)
        except FileExistsError:
            pass
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o077:
            raise DatabaseUnavailable(
                f"{folder} must be a folder that only the database's user can enter",
                details={"path": str(folder), "owner": found.st_uid, "expected": uid},
                hint="remove it, or set SMITHERS_HOME to a shorter path",
            )

    def drop_socket_dir(self) -> None:
        """Remove the socket's folder of a stopped server, if it isn't the data directory."""
        if self.socket_dir != self.data:
            with suppress(OSError):
                self.socket_dir.rmdir()
