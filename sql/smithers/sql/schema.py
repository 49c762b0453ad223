"""Bring the tables and functions of a database to this release, and refuse those of another.

Any number of processes may migrate at once: one transaction under an advisory lock does all
of it or nothing. Tables only go forward. Functions live in a schema named after the protocol,
so that those of a later protocol can be there beside ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

import psycopg

from smithers.sql.calls import Connection, rows, scalar
from smithers.sql.database_errors import SchemaError
from smithers.sql.role_settings import apply_role_settings
from smithers.sql.schema_files import (
    PROTOCOL,
    Functions,
    Migration,
    functions,
    migrations,
    release,
)

__all__ = ["Applied", "Migrated", "State", "check", "migrate", "read_state"]

LOCK = 7_406_511_237_003
OLDEST_SERVER = 150_000
WAIT_FOR_MIGRATORS = "60s"
WAIT_FOR_TABLES = "5s"


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that a database has."""

    number: int
    name: str
    checksum: str
    breaking: bool


@dataclass(frozen=True, slots=True)
class Installed:
    """The functions of one protocol that a database has, and the release that brought them."""

    checksum: str
    release: list[int]


@dataclass(frozen=True, slots=True)
class State:
    """What a database has: its migrations, and checksum and release of our protocol's functions."""

    applied: tuple[Applied, ...] = ()
    functions: str | None = None
    release: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Migrated:
    """What `migrate` did, or with `planned` would do."""

    migrations: tuple[str, ...]
    functions: bool
    planned: bool

    @property
    def changed(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.migrations) or self.functions


def read_state(connection: Connection) -> State:
    """What the database has now; empty for one that was never migrated."""
    if scalar(connection, "select to_regclass('smithers.protocols')") is None:
        return State()
    applied = rows(
        connection,
        Applied,
        "select number, name, checksum, breaking from smithers.migrations order by number",
    )
    for installed in rows(
        connection,
        Installed,
        "select checksum, release from smithers.protocols where protocol = %s",
        PROTOCOL,
    ):
        return State(tuple(applied), installed.checksum, tuple(installed.release))
    return State(tuple(applied))


def check(connection: Connection) -> None:
    """Return if this release can work on the database; raise `SchemaError` otherwise.

    A later migration that isn't breaking is fine: that is what lets a fleet be upgraded one
    process after another. Later functions of our protocol are fine too.
    """
    state = read_state(connection)
    if not state.applied:
        raise SchemaError(
            "SCHEMA_MISSING", "the database has no Smithers tables", hint="smithers migrate"
        )
    _refuse_foreign(state, migrations())
    pending = [m.name for m in _pending(state, migrations())]
    if pending or _functions_outdated(state, functions()):
        raise SchemaError(
            "SCHEMA_OUTDATED",
            "the database is older than this release of Smithers",
            details={"pending": pending, "protocol": PROTOCOL},
            hint="smithers migrate",
        )


def migrate(connection: Connection, *, plan: bool = False) -> Migrated:
    """Apply what is missing, in one transaction, and say what it was.

    With `plan` nothing is changed. The connection must be in autocommit mode. Raises
    `SchemaError`: `SCHEMA_TOO_NEW`, `SCHEMA_CHANGED`, or `SCHEMA_BUSY` when others hold locks.
    """
    if plan:
        return _plan(read_state(connection))
    try:
        with connection.transaction():
            return _migrate_locked(connection)
    except psycopg.errors.LockNotAvailable as exc:
        raise SchemaError(
            "SCHEMA_BUSY",
            "another session holds a lock on the tables; nothing was changed",
            details={"cause": str(exc).strip()},
            hint="end long transactions, then try again",
        ) from exc


def _plan(state: State) -> Migrated:
    _refuse_foreign(state, migrations())
    pending = tuple(m.name for m in _pending(state, migrations()))
    return Migrated(pending, _functions_outdated(state, functions()), planned=True)


def _migrate_locked(connection: Connection) -> Migrated:
    _refuse_old_server(connection)
    # Migrations may take longer than the role's limits for everyday statements allow.
    connection.execute("set local statement_timeout = 0")
    connection.execute("set local idle_in_transaction_session_timeout = 0")
    connection.execute("select set_config('lock_timeout', %s, true)", [WAIT_FOR_MIGRATORS])
    connection.execute("select pg_advisory_xact_lock(%s)", [LOCK])
    connection.execute("select set_config('lock_timeout', %s, true)", [WAIT_FOR_TABLES])
    connection.execute(_BOOTSTRAP)
    plan = _plan(read_state(connection))
    for migration in migrations():
        if migration.name in plan.migrations:
            _apply(connection, migration)
    if plan.functions:
        _install(connection, functions())
    apply_role_settings(connection)
    return Migrated(plan.migrations, plan.functions, planned=False)


_BOOTSTRAP: LiteralString = """
create schema if not exists smithers;
create table if not exists smithers.migrations (
    number      integer     not null primary key,
    name        text        not null,
    checksum    text        not null,
    breaking    boolean     not null,
    applied_at  timestamptz not null default now()
);
create table if not exists smithers.protocols (
    protocol      integer     not null primary key,
    checksum      text        not null,
    release       integer[]   not null,
    installed_at  timestamptz not null default now()
);
"""


def _apply(connection: Connection, migration: Migration) -> None:
    connection.execute(migration.text)
    connection.execute(
        "insert into smithers.migrations (number, name, checksum, breaking)"
        " values (%s, %s, %s, %s)",
        [migration.number, migration.name, migration.checksum, migration.breaking],
    )


def _install(connection: Connection, ours: Functions) -> None:
    connection.execute(b"create schema if not exists " + ours.schema.encode())
    for text in ours.texts:
        connection.execute(text)
    connection.execute(
        "insert into smithers.protocols (protocol, checksum, release) values (%s, %s, %s)"
        " on conflict (protocol) do update set checksum = excluded.checksum,"
        " release = excluded.release, installed_at = now()",
        [PROTOCOL, ours.checksum, list(release())],
    )


def _pending(state: State, ours: Sequence[Migration]) -> list[Migration]:
    have = {a.number for a in state.applied}
    return [m for m in ours if m.number not in have]


def _functions_outdated(state: State, ours: Functions) -> bool:
    """Functions of a later release of the same protocol are not put back."""
    return state.functions != ours.checksum and state.release <= release()


def _refuse_foreign(state: State, ours: Sequence[Migration]) -> None:
    """Raise for a breaking migration that we don't know, or one that isn't what we know."""
    known = {m.number: m for m in ours}
    for applied in state.applied:
        mine = known.get(applied.number)
        if mine is None and applied.breaking:
            raise SchemaError(
                "SCHEMA_TOO_NEW",
                f"the database was migrated by a later release of Smithers ({applied.name})",
                details={"migration": applied.name},
                hint="update smithers-fleet",
            )
        if mine is not None and mine.checksum != applied.checksum:
            raise SchemaError(
                "SCHEMA_CHANGED",
                f"migration {mine.name} isn't the one that this database has",
                details={"migration": mine.name, "ours": mine.checksum, "has": applied.checksum},
                hint="use the release that made the database, or a new database",
            )


def _refuse_old_server(connection: Connection) -> None:
    if connection.info.server_version < OLDEST_SERVER:
        raise SchemaError(
            "SCHEMA_UNSUPPORTED",
            f"Postgres {connection.info.server_version // 10_000} is too old",
            hint=f"use Postgres {OLDEST_SERVER // 10_000} or later",
        )
