"""How a process reaches its database: which one it is, a connection, a pool of them.

A connection is in autocommit mode and notices within 20 seconds that its peer is gone.
Retrying (tenacity) is for connecting only; a statement is never repeated here.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import conninfo
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from smithers.sql import embedded
from smithers.sql.calls import Connection
from smithers.sql.database_errors import DatabaseUnavailable

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

__all__ = [
    "Connection",
    "Database",
    "DatabaseUnavailable",
    "connect",
    "open_pool",
    "reached",
    "resolve_database",
]

PREPARE_AFTER = 5
CONNECT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Database:
    """A database that a process uses.

    `home` is set for an embedded one: its server may be restarted by whoever needs it.
    `pooled` says that PgBouncer is between us in transaction mode: no prepared statements.
    """

    dsn: str
    home: Path | None = None
    pooled: bool = False
    options: embedded.Options | None = None

    @property
    def embedded(self) -> bool:
        """Whether we run the server ourselves."""
        return self.home is not None

    @property
    def shown(self) -> str:
        """The database in words that hold no password."""
        try:
            parts = conninfo.conninfo_to_dict(self.dsn)
        except psycopg.Error:
            return "the database"
        host = parts.get("host") or "localhost"
        return f"{parts.get('dbname') or 'the default database'} on {host}"


def resolve_database(
    database_url: str | None,
    home: Path,
    *,
    pooled: bool = False,
    options: embedded.Options | None = None,
) -> Database:
    """The given server, else the embedded one of `home`, made and started if need be.

    Raises `DatabaseUnavailable` for an embedded server that can't run; whether a given one
    answers is found out by `connect`.
    """
    if database_url is not None:
        return Database(database_url, pooled=pooled)
    return Database(embedded.ensure_running(home, options), home=home, options=options)


def connect(
    database: Database | str,
    *,
    application_name: str = "smithers",
    deadline_seconds: float = 10.0,
    autocommit: bool = True,
) -> Connection:
    """One connection, tried again until the deadline while the server may still come up.

    The deadline must stay below the lease of whoever waits. An embedded server that has died
    (not one that was stopped) is started again. Raises `DatabaseUnavailable`: at once for a
    wrong password, an unknown database or a malformed URL.
    """
    database = Database(database) if isinstance(database, str) else database
    attempts = Retrying(
        stop=stop_after_delay(deadline_seconds),
        wait=wait_random_exponential(multiplier=0.05, max=1.0),
        retry=retry_if_exception(_may_pass),
        reraise=True,
    )
    try:
        for attempt in attempts:
            with attempt:
                return _connect_once(database, application_name, autocommit=autocommit)
    except psycopg.Error as exc:
        raise _unavailable(database, exc) from exc
    raise AssertionError("tenacity gave no attempt")


def _connect_once(database: Database, application_name: str, *, autocommit: bool) -> Connection:
    arguments = _arguments(database, application_name)
    try:
        return psycopg.connect(database.dsn, autocommit=autocommit, **arguments)
    except psycopg.OperationalError as exc:
        if database.home is None or not _may_pass(exc):
            raise
        embedded.ensure_running(database.home, database.options, restart_only=True)
        return psycopg.connect(database.dsn, autocommit=autocommit, **arguments)


def _arguments(database: Database, application_name: str) -> dict[str, Any]:
    """What every connection asks of psycopg and libpq; what the URL says itself is kept."""
    wanted: dict[str, Any] = {
        "application_name": application_name[:63],
        "connect_timeout": CONNECT_SECONDS,
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 20_000,
    }
    try:
        given = conninfo.conninfo_to_dict(database.dsn)
    except psycopg.ProgrammingError as exc:
        raise _unavailable(database, exc) from exc
    kept = {name: value for name, value in wanted.items() if name not in given}
    return {**kept, "prepare_threshold": None if database.pooled else PREPARE_AFTER}


def open_pool(
    database: Database | str,
    *,
    application_name: str = "smithers",
    min_size: int = 1,
    max_size: int = 4,
    timeout_seconds: float = 10.0,
) -> ConnectionPool[Connection]:
    """A pool whose connections are like those of `connect`, checked before they are lent.

    The caller closes it. It connects in its own threads: `pool.wait()` shows whether it can.
    """
    from psycopg_pool import ConnectionPool

    database = Database(database) if isinstance(database, str) else database
    return ConnectionPool(
        database.dsn,
        kwargs={"autocommit": True, **_arguments(database, application_name)},
        connection_class=psycopg.Connection[Any],
        min_size=min_size,
        max_size=max_size,
        timeout=timeout_seconds,
        check=ConnectionPool.check_connection,
        name=application_name,
        open=True,
    )


@contextmanager
def reached(database: Database) -> Generator[None]:
    """Raise `DatabaseUnavailable` for a connection that is lost inside, and for a server on which
    this can't be done: it only reads, its disk is full, or our role has no right to.
    """
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as exc:
        if exc.sqlstate is not None and not exc.sqlstate.startswith(("08", "57P", "53")):
            raise
        raise _unavailable(database, exc) from exc
    except (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.InsufficientPrivilege) as exc:
        raise _unavailable(database, exc) from exc


# libpq gives no SQLSTATE for a refused connection, so the words must do. A server that speaks
# another language is asked again until the deadline, and its words are shown. A name
# that can't be resolved may be known in a moment, as in a pod that starts.
_FINAL = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|role .* does not exist"
    r"|database .* does not exist|permission denied|not permitted|is not permitted to log in"
    r"|invalid|SSL .* not supported|certificate",
    re.IGNORECASE,
)


def _may_pass(exc: BaseException) -> bool:
    """Whether another try could have another end."""
    return isinstance(exc, psycopg.OperationalError) and not _FINAL.search(str(exc))


def _unavailable(database: Database, exc: psycopg.Error) -> DatabaseUnavailable:
    lines = [line.strip() for line in str(exc).splitlines()]
    said = " ".join(line for line in lines if line and not line.startswith("Is the server"))
    cause = said.removeprefix("connection failed: ")
    hint = "check SMITHERS_DATABASE_URL, and that the server runs"
    if database.embedded:
        hint = "smithers db status shows the embedded server"
    return DatabaseUnavailable(
        f"{database.shown}: {cause}",
        details={"cause": cause, "embedded": database.embedded},
        hint=hint,
    )
