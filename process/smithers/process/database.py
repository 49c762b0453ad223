"""From settings to a database that this release can work on."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from smithers.process.settings import Settings
from smithers.sql import schema
from smithers.sql.calls import Connection
from smithers.sql.connect import Database, connect, reached, resolve_database
from smithers.sql.database_errors import DatabaseUnavailable, SchemaError
from smithers.sql.embedded import Options
from smithers.sql.errors import is_connection_lost

__all__ = ["locate_database", "open_connection", "open_database", "refuse_malformed_url"]

START_SECONDS: Final = 60.0
"""How long a process that is to stay waits for a database that comes up, after a crash say."""

_PAUSE: Final = 0.05


def locate_database(settings: Settings) -> Database:
    """The database that the settings mean, its embedded server running; no look at the schema.

    Raises `DatabaseUnavailable`.
    """
    if settings.database_url is None:
        _refuse_folder_of_another_user(settings)
    else:
        refuse_malformed_url(settings)
    return resolve_database(
        settings.database_url,
        settings.home,
        pooled=settings.database_pooled,
        options=_options(settings),
    )


def refuse_malformed_url(settings: Settings) -> None:
    """Raise `DatabaseUnavailable` for a given URL that libpq can't read.

    What libpq says about it isn't shown: it quotes the URL, the password with it.
    """
    try:
        conninfo_to_dict(settings.database_url or "")
    except psycopg.ProgrammingError:
        origin = settings.origins["database_url"]
        raise DatabaseUnavailable(
            f"{origin} is no address of a database that can be read",
            details={"origin": str(origin)},
            hint="write postgresql://user:password@host:5432/name, and in a name or a password "
            "each of @ : / ? # % [ ] and space as %40 and so on",
        ) from None


def _options(settings: Settings) -> Options:
    """How the embedded server is run; unless a setting says when it stops, that stays as it was."""
    origin = settings.origins.get("db_stop_when_idle")
    said = origin is not None and origin.kind != "default"
    return Options(
        bindir=settings.pg_bindir,
        stop_when_idle=settings.db_stop_when_idle if said else None,
    )


def open_database(
    settings: Settings, *, application_name: str = "smithers", deadline_seconds: float = 10.0
) -> Database:
    """Like `open_connection`, for those who connect later or more than once."""
    database, connection = open_connection(
        settings, application_name=application_name, deadline_seconds=deadline_seconds
    )
    connection.close()
    return database


def open_connection(
    settings: Settings, *, application_name: str = "smithers", deadline_seconds: float = 10.0
) -> tuple[Database, Connection]:
    """The database and a connection to it, whose schema fits this release.

    An embedded database is migrated on the way; a given one is refused until somebody runs
    `smithers migrate`. The caller closes the connection. Raises `DatabaseUnavailable` when
    nothing answers within `deadline_seconds`, and `SchemaError`.
    """
    database = locate_database(settings)
    give_up_at = time.monotonic() + deadline_seconds
    while True:
        left = max(0.0, give_up_at - time.monotonic())
        try:
            return database, _open_checked(database, application_name, left)
        except psycopg.Error as exc:  # it crashed after it had let us in: nothing was begun
            if not is_connection_lost(exc):
                raise
            if left <= 0:
                with reached(database):
                    raise
            time.sleep(_PAUSE)


def _open_checked(database: Database, application_name: str, deadline_seconds: float) -> Connection:
    connection = connect(
        database, application_name=application_name, deadline_seconds=deadline_seconds
    )
    try:
        schema.check(connection)
    except SchemaError as exc:
        if not database.embedded or exc.code not in ("SCHEMA_MISSING", "SCHEMA_OUTDATED"):
            connection.close()
            raise
        with closing(connection):
            schema.migrate(connection)
        # It was opened before the role had its limits.
        connection = connect(
            database, application_name=application_name, deadline_seconds=deadline_seconds
        )
    except psycopg.errors.InsufficientPrivilege as exc:
        connection.close()
        raise _no_rights(database, exc) from exc
    except BaseException:
        connection.close()
        raise
    return connection


def _no_rights(database: Database, exc: psycopg.Error) -> DatabaseUnavailable:
    said = exc.diag.message_primary or str(exc)
    return DatabaseUnavailable(
        f"{database.shown}: {said}",
        details={"cause": said},
        hint="connect as the role that ran smithers migrate",
    )


def _refuse_folder_of_another_user(settings: Settings) -> None:
    """A folder found by walking upward is used only if it is ours; one that was named, always."""
    origin = settings.origins.get("home")
    if origin is None or origin.kind != "default" or not settings.home.exists():
        return
    if settings.home.stat().st_uid != os.geteuid():
        raise DatabaseUnavailable(
            f"{settings.home} belongs to another user",
            details={"home": str(settings.home), "owner": settings.home.stat().st_uid},
            hint="set SMITHERS_HOME to it to use it all the same, or to a folder of your own",
        )
