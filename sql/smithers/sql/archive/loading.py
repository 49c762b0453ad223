"""Put a dump into a database: one transaction, which only a whole dump commits."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from smithers.sql.archive.contents import Contents
from smithers.sql.archive.errors import (
    DATABASE_NOT_EMPTY,
    DUMP_INVALID,
    DUMP_TOO_NEW,
    RESTORE_FAILED,
    ArchiveError,
)
from smithers.sql.archive.programs import connection_environment
from smithers.sql.calls import Connection, scalar, scalars
from smithers.sql.embedded.complaint import complaint
from smithers.sql.schema import LOCK, migrate, read_state

_CHUNK: Final = 1 << 20
_TIMEOUT_OF_17: Final = b"SET transaction_timeout = 0;\n"

# Under the lock of those who migrate; the tables that would tell of a late start are locked too.
_BEGIN: Final = b"""
begin;
set local statement_timeout = 0;
set local idle_in_transaction_session_timeout = 0;
set local lock_timeout = '10s';
set local client_min_messages = warning;
select pg_advisory_xact_lock(%d) \\g /dev/null
do $$
declare v_schema text;
begin
    if to_regclass('smithers.protocols') is not null then
        lock table smithers.runs, smithers.processes in access exclusive mode;
        if exists (select from smithers.runs) then
            raise exception 'a run was started meanwhile';
        end if;
        if exists (select from smithers.processes
                    where stopped_at is null and lease_until >= smithers.now()) then
            raise exception 'a Smithers process was started meanwhile';
        end if;
    end if;
    for v_schema in select nspname from pg_namespace where nspname ~ '^smithers(_p[0-9]+)?$'
    loop
        execute format('drop schema %%I cascade', v_schema);
    end loop;
end $$;
"""


def refuse_unfit(connection: Connection, contents: Contents) -> None:
    """Raise where a dump mustn't be put into a database; nothing is written.

    `SchemaError` for a database of a later release, `ArchiveError` for a dump of a
    later Postgres and for a database with runs or with tables that aren't ours.
    """
    server = connection.info.server_version // 10_000
    if contents.major > server:
        raise ArchiveError(
            DUMP_TOO_NEW,
            f"{contents.path} is of Postgres {contents.major}, the server is Postgres {server}",
            details={"dump": contents.major, "server": server},
            hint=f"restore it on a server of Postgres {contents.major} or later",
        )
    if read_state(connection).applied:
        migrate(connection, plan=True)
        _refuse_runs(connection)
    elif scalars(connection, "select nspname from pg_namespace where nspname = 'smithers'"):
        raise ArchiveError(
            DATABASE_NOT_EMPTY,
            "the database has a schema named smithers that Smithers didn't make",
            hint="restore into another database",
        )


def count_runs(connection: Connection) -> int:
    """How many runs a database holds."""
    return int(scalar(connection, "select count(*) from smithers.runs"))


def _refuse_runs(connection: Connection) -> None:
    runs = count_runs(connection)
    if runs:
        raise ArchiveError(
            DATABASE_NOT_EMPTY,
            f"the database has {runs} run{'s' if runs > 1 else ''} already",
            details={"runs": runs},
            hint="restore into a new one: SMITHERS_HOME=NEW_FOLDER smithers db restore FILE",
        )


def load_archive(
    dsn: str, programs: Mapping[str, Path], contents: Contents, *, server_version: int
) -> None:
    """Replace our schemas in a database by those of a dump, all of it or nothing.

    pg_restore turns the dump into statements and psql sends them; the commit follows only when
    pg_restore has come to the end. Raises `ArchiveError`.
    """
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as answered:
        reader = subprocess.Popen(
            [programs["pg_restore"], "--no-owner", "--no-privileges", "--file=-", contents.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=told,
        )
        writer = subprocess.Popen(
            [programs["psql"], "-X", "-q", "-w", "-v", "ON_ERROR_STOP=1", "-f", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=answered,
            env={**os.environ, **connection_environment(dsn), "LC_ALL": "C"},
        )
        with reader, writer:
            read = _pump(reader, writer, old=server_version < 170_000)
        if not read:
            raise _failed(DUMP_INVALID, f"{contents.path} is not a whole dump", told)
        if writer.returncode != 0:
            raise _failed(RESTORE_FAILED, f"{contents.path} can't be restored", answered)


def _pump(reader: subprocess.Popen[bytes], writer: subprocess.Popen[bytes], *, old: bool) -> bool:
    """Send all statements, and the commit if the dump was whole; False if it wasn't."""
    assert reader.stdout is not None
    assert writer.stdin is not None
    try:
        writer.stdin.write(_BEGIN % LOCK)
        chunk = reader.stdout.read(_CHUNK)
        if old:  # it stands at the beginning, and an older server doesn't know it
            chunk = chunk.replace(_TIMEOUT_OF_17, b"", 1)
        while chunk:
            writer.stdin.write(chunk)
            chunk = reader.stdout.read(_CHUNK)
        whole = reader.wait() == 0
        if whole:
            writer.stdin.write(b"\ncommit;\n")
        writer.stdin.close()
    except BrokenPipeError:  # psql has ended: its exit code says so
        reader.kill()
        with suppress(BrokenPipeError):
            writer.stdin.close()
        return True
    return whole


def _failed(code: str, message: str, said: IO[bytes]) -> ArchiveError:
    said.seek(0)
    cause = complaint(said.read())
    return ArchiveError(
        code,
        f"{message}: {cause}",
        details={"cause": cause},
        hint="nothing was changed",
    )
