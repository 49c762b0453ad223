"""A connection of an operation: to the right database, reading values as the engine does."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from smithers.process.database import open_connection, refuse_malformed_url
from smithers.process.settings import Settings
from smithers.sql import codec
from smithers.sql.calls import Connection
from smithers.sql.connect import Database, connect, reached
from smithers.sql.embedded import server_status


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


@contextmanager
def session_if_running(
    settings: Settings, *, purpose: str, seconds: float
) -> Generator[Session | None]:
    """As `session`, but starts and changes nothing: None where no embedded server runs.

    Waits at most `seconds` for an answer. Raises DatabaseUnavailable.
    """
    url = settings.database_url
    if url is None:
        server = server_status(settings.home)
        if not server.running:
            yield None
            return
        url = server.url
    else:
        refuse_malformed_url(settings)
    database = Database(url, pooled=settings.database_pooled)
    name = f"smithers {purpose}"
    with connect(database, application_name=name, deadline_seconds=seconds) as connection:
        codec.install(connection)
        yield Session(settings, database, connection)
