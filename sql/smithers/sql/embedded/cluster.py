"""Make a data directory, whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded import user as users
from smithers.sql.embedded.locator import Binaries
from smithers.sql.embedded.place import DATABASE, ROLE, Place
from smithers.sql.embedded.user import ServerUser

TASK_ROLE = "smithers_task"
IDENT_MAP = "smithers"


def create_cluster(
    place: Place, binaries: Binaries, user: ServerUser, *, durable: bool = True
) -> None:
    """Make the data directory with our role and database, and who may connect.

    It is made beside its place and renamed when complete, so that a kill at any point leaves
    nothing that looks like a database. Call it under the lock. Raises `DatabaseUnavailable`.
    """
    _refuse_if_taken(place)
    fresh = place.home / "pg.new"
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        _create(fresh, place, binaries, user, durable=durable)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _refuse_if_taken(place: Place) -> None:
    """Raise if something is in its place that isn't a data directory."""
    if not place.data.exists() or (place.data.is_dir() and not any(place.data.iterdir())):
        return
    raise DatabaseUnavailable(
        f"{place.data} is in the way: it is no data directory of Postgres",
        details={"data": str(place.data)},
        hint="move it away, or set SMITHERS_HOME to another folder",
    )


def _create(
    fresh: Path, place: Place, binaries: Binaries, user: ServerUser, *, durable: bool
) -> None:
    fresh.mkdir(mode=0o700)
    if user.drop:
        os.chown(fresh, user.uid, user.gid)
    _initdb(fresh, binaries, user, place.log, durable=durable)
    _write(fresh / "pg_hba.conf", _HBA)
    _write(fresh / "pg_ident.conf", _ident(user))
    _create_database(fresh, binaries, user, place.log)
    fresh.rename(place.data)
    if durable:
        _sync_folder(place.home)


def _initdb(fresh: Path, binaries: Binaries, user: ServerUser, log: Path, *, durable: bool) -> None:
    program = binaries.program("initdb")
    arguments = ["-U", ROLE, "--auth=peer", "--encoding=UTF8", "--locale=C", "--data-checksums"]
    if not durable:
        arguments.append("--no-sync")
    line = users.command(user, [program, "-D", fresh, *arguments], reach=(fresh, program))
    users.run(line, program, log)


def _create_database(fresh: Path, binaries: Binaries, user: ServerUser, log: Path) -> None:
    """In single-user mode, so that a cluster without our database never exists."""
    program = binaries.program("postgres")
    line = users.command(
        user, [program, "--single", "-D", fresh, "postgres"], reach=(fresh, program)
    )
    users.run(line, program, log, stdin=f'create database "{DATABASE}"\n'.encode())


# The socket's folder keeps other users out already; this says it again where it is checked.
_HBA = f"""\
# Written by smithers: only over the socket, only who is named in pg_ident.conf.
local  all  all  peer  map={IDENT_MAP}
"""


def _ident(user: ServerUser) -> str:
    """Root and the server's own user may be any of our roles."""
    names = dict.fromkeys(("root", user.name))
    lines = [f'{IDENT_MAP}  "{name}"  {role}' for name in names for role in (ROLE, TASK_ROLE)]
    return "# Written by smithers: system user, role.\n" + "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    """Replace the content of a file of the server; its owner and mode stay."""
    with path.open("r+b") as file:
        file.truncate()
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
