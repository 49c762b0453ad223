"""A connection of an operation: to the right database, reading values as the engine does."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from smithers.process.database import open_connection
from smithers.process.settings import Settings
from smithers.sql import codec
from smithers.sql.calls import Connection
from smithers.sql.connect import Database, reached


@dataclass(frozen=True, slots=True)
class Session:
    """One use of the database by one thread."""

    settings: Settings
    database: Database
    connection: Connection


@contextmanager
def session(settings: Settings, *, purpose: str = "command") -> Generator[Session]:
    """Connect, and disconnect at the end.

    Raises DatabaseUnavailable, also when the connection is lost inside, and SchemaError.
    """
    database, connection = open_connection(settings, application_name=f"smithers {purpose}")
    codec.install(connection)
    with connection, reached(database):
        yield Session(settings, database, connection)
