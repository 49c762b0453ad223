"""Dump the database to a file, and restore one: to go on elsewhere with every run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from smithers.operations.serving import is_dead
from smithers.process.database import locate_database
from smithers.process.settings import Settings
from smithers.sql import archive, reads, schema
from smithers.sql.archive.errors import DATABASE_IN_USE, DUMP_INVALID, ArchiveError
from smithers.sql.archive.programs import find_archivers, newest_archivers
from smithers.sql.calls import Connection
from smithers.sql.connect import Database, connect, reached
from smithers.sql.database_errors import SchemaError
from smithers.sql.processes import stop_process


@dataclass(frozen=True, slots=True)
class Dumped:
    """A dump that was written; `path` and `bytes` are None for one that went to a stream."""

    path: Path | None
    bytes: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Restored:
    """A dump that is the database now."""

    path: Path
    bytes: int
    runs: int
    seconds: float


def dump(settings: Settings, target: Path | IO[bytes]) -> Dumped:
    """Write the whole database, of one moment, to a file or an open stream.

    Nobody is disturbed, so it may be done at any time, and for the database of an older release
    too. Raises DatabaseUnavailable, SchemaError for one without our tables, ArchiveError.
    """
    begun = time.monotonic()
    database = locate_database(settings)
    with _opened(database) as connection, reached(database):
        if not schema.read_state(connection).applied:
            raise SchemaError(
                "SCHEMA_MISSING",
                f"{database.shown} has no Smithers tables",
                hint="smithers migrate",
            )
        programs = _programs(settings, _major(connection))
    path, size = None, None
    if isinstance(target, Path):
        path, size = target, archive.write_to_file(database.dsn, programs["pg_dump"], target)
    else:
        archive.write_to_stream(database.dsn, programs["pg_dump"], target)
    return Dumped(path, size, round(time.monotonic() - begun, 3))


def restore(settings: Settings, path: Path) -> Restored:
    """Make a dump the database, which must hold no run and be used by no process.

    It is all done or nothing; then the tables are brought to this release. Raises ArchiveError,
    SchemaError, DatabaseUnavailable.
    """
    begun = time.monotonic()
    if not path.is_file():
        what = "is not a file" if path.exists() else "doesn't exist"
        raise ArchiveError(DUMP_INVALID, f"{path} {what}", hint="smithers db dump FILE makes one")
    contents = archive.read_contents(path, newest_archivers(settings.pg_bindir)["pg_restore"])
    archive.refuse_schema(contents)
    database = locate_database(settings)
    with _opened(database) as connection, reached(database):
        archive.refuse_unfit(connection, contents)
        _refuse_processes(connection)
        version = connection.info.server_version
    programs = _programs(settings, max(version // 10_000, contents.major))
    archive.load_archive(database.dsn, programs, contents, server_version=version)
    with _opened(database) as connection, reached(database):
        schema.migrate(connection)
        runs = archive.count_runs(connection)
    return Restored(path, contents.size, runs, round(time.monotonic() - begun, 3))


def _opened(database: Database) -> Connection:
    return connect(database, application_name="smithers db")


def _major(connection: Connection) -> int:
    return connection.info.server_version // 10_000


def _programs(settings: Settings, at_least: int) -> dict[str, Path]:
    """For another's server the system's are preferred: those of a wheel have no TLS."""
    given = settings.database_url is not None
    return find_archivers(settings.pg_bindir, prefer_path=given, at_least=at_least)


def _refuse_processes(connection: Connection) -> None:
    """Raise if a process of ours works on the database; say of the dead that they have ended."""
    if not schema.read_state(connection).applied:
        return
    current = reads.read_processes(connection)
    living = [row for row in current if not is_dead(row)]
    if living:
        names = ", ".join(f"{row['kind']} {row['pid']} on {row['host']}" for row in living)
        raise ArchiveError(
            DATABASE_IN_USE,
            f"Smithers processes work on the database: {names}",
            details={"processes": living},
            hint="stop them first",
        )
    for row in current:
        stop_process(connection, int(row["id"]))
