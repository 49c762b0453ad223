"""Look at the database through one connection; a server that doesn't run isn't started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from smithers.operations.doctor.database import (
    Embedded,
    Server,
    judge_clock,
    judge_connections,
    judge_durability,
    judge_embedded,
    judge_schema,
    judge_server,
)
from smithers.operations.doctor.finding import Finding, State, failed, isolated
from smithers.operations.doctor.fleet import judge_processes, judge_runs
from smithers.operations.looking import list_runs
from smithers.process.database import refuse_malformed_url
from smithers.process.settings import Settings
from smithers.process.version import version
from smithers.sql import codec, reads, schema
from smithers.sql.calls import Connection
from smithers.sql.connect import Database, connect
from smithers.sql.database_errors import DatabaseUnavailable, SchemaError
from smithers.sql.embedded import Place, find_binaries, server_status
from smithers.sql.embedded.processes import serves
from smithers.sql.embedded.stale import read_pid

CONNECT_SECONDS: Final = 1.0
"""How long is tried again what may pass; one try may take longer."""
MOST_RUNS: Final = 500
_ROUND_TRIPS: Final = 3
_PATIENCE: Final = "3s"
LATER: Final = ("durability", "connections", "schema", "clock", "processes", "runs")
"""The checks that need a server that answers."""


def examine_database(settings: Settings) -> list[Finding]:
    """All findings about the database; those after one that can't be reached are skipped."""
    try:
        embedded = look_at_embedded(settings) if settings.database_url is None else None
        finding = None if embedded is None else judge_embedded(embedded)
        if embedded is not None and finding is not None and not embedded.running:
            return [finding, *skipped("the database doesn't run", LATER)]
        database = _database(settings, embedded)
        with closing(_connect(database)) as connection:
            return list(_examine(connection, database, finding))
    except Exception as error:  # noqa: BLE001 - whatever keeps us from asking is the finding
        return [failed("database", error), *skipped("the database can't be asked", LATER)]


def skipped(why: str, checks: tuple[str, ...]) -> list[Finding]:
    """Findings of checks that can't be made."""
    return [Finding(check, State.SKIPPED, why) for check in checks]


def look_at_embedded(settings: Settings) -> Embedded:
    """The facts of the embedded server. Raises DatabaseUnavailable for a folder of others."""
    status = server_status(settings.home)
    pid = read_pid(Place(settings.home))
    silent = pid is not None and not status.running and serves(pid, status.data)
    bindir, lacking = None, None
    try:
        bindir = find_binaries(settings.pg_bindir, major=status.major).bindir
    except DatabaseUnavailable as error:
        lacking = error
    return Embedded(
        data=status.data,
        log=status.log,
        url=status.url,
        running=status.running,
        pid=status.pid,
        silent_pid=pid if silent else None,
        major=status.major,
        in_the_way=status.major is None and _holds_something(status.data),
        bindir=bindir,
        lacking=lacking,
    )


def _holds_something(path: Path) -> bool:
    return os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir()))


def _database(settings: Settings, embedded: Embedded | None) -> Database:
    """The database, as one that nobody starts again. Raises DatabaseUnavailable."""
    if embedded is not None:
        return Database(embedded.url)
    refuse_malformed_url(settings)
    assert settings.database_url is not None
    return Database(settings.database_url, pooled=settings.database_pooled)


def _connect(database: Database) -> Connection:
    connection = connect(
        database, application_name="smithers doctor", deadline_seconds=CONNECT_SECONDS
    )
    codec.install(connection)
    return connection


def _examine(
    connection: Connection, database: Database, embedded: Finding | None
) -> Iterator[Finding]:
    server = look_at_server(connection)
    shown = "embedded" if embedded else database.shown
    yield isolated("database", lambda: judge_server(server, shown, embedded=embedded))
    yield isolated("durability", lambda: judge_durability(server))
    yield isolated("connections", lambda: judge_connections(server))
    fits = isolated("schema", lambda: _schema(connection, embedded=embedded is not None))
    yield fits
    yield isolated("clock", lambda: judge_clock(server))
    if fits.state is not State.OK:
        yield from skipped("the schema isn't that of this release", ("processes", "runs"))
        return
    yield isolated("processes", lambda: _processes(connection))
    yield isolated("runs", lambda: _runs(connection))


def look_at_server(connection: Connection, *, clock: Callable[[], float] = time.time) -> Server:
    """What the server says, by the fastest of a few round trips: the surest about the time."""
    found: list[Server] = []
    for _ in range(_ROUND_TRIPS):
        asked = clock()
        row = reads.read_health(connection)
        found.append(Server.of(row, asked=asked, answered=clock()))
    return min(found, key=lambda server: server.round_trip)


def _schema(connection: Connection, *, embedded: bool) -> Finding:
    refusal: SchemaError | None = None
    release = version()
    try:
        with reads.snapshot(connection, timeout=_PATIENCE):
            schema.check(connection)
            release = ".".join(map(str, schema.read_state(connection).release)) or release
    except SchemaError as error:
        refusal = error
    return judge_schema(refusal, embedded=embedded, release=release)


def _processes(connection: Connection) -> Finding:
    with reads.snapshot(connection, timeout=_PATIENCE):
        return judge_processes(reads.read_living(connection), version())


def _runs(connection: Connection) -> Finding:
    return judge_runs(list_runs(connection, limit=MOST_RUNS), limit=MOST_RUNS)
