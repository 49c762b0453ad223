"""A connection of one thread that is made anew when it is lost, and what the process says of it.

Nothing is repeated here: a statement that was under way when the connection died may have been
carried out. The loop above decides what to ask again.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

import psycopg

from smithers.observability.logs import Log
from smithers.sql import codec
from smithers.sql.calls import Connection
from smithers.sql.connect import Database, connect
from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.errors import is_connection_lost

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class DatabaseAwayError(Exception):
    """The database can't be reached, or went away during a statement of unknown outcome."""


class DatabaseState:
    """Whether the database answers, for all threads of a process: one log line per change."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._times = 0
        self.is_up = True

    def up(self) -> int:
        """A connection was made; returns how many times the database has come back."""
        with self._lock:
            changed, self.is_up = not self.is_up, True
            self._times += changed
            times = self._times
        if changed:
            self._log.info("database-back")
        return times

    def down(self, error: BaseException, *, made: int | None) -> None:
        """A connection could not be made, or one was lost for which `up` gave `made`.

        A connection from before the database came back says nothing new when it is found dead.
        """
        with self._lock:
            if made is not None and made < self._times:
                return
            changed, self.is_up = self.is_up, False
        if changed:
            self._log.warning("database-away", error=" ".join(str(error).split())[:300])


class Link:
    """One thread's connection. `cut` may be called by any thread, the rest by that one."""

    def __init__(self, database: Database, *, name: str, state: DatabaseState) -> None:
        self._database = database
        self._name = name
        self._state = state
        self._connection: Connection | None = None
        self._closing = threading.Lock()
        self._failures = 0
        self._made = 0
        self._abandoned = False
        self.busy_since: float | None = None
        """Since when, on the monotonic clock, the connection is in use; None when it isn't."""

    @contextmanager
    def connection(self) -> Generator[Connection, None, None]:
        """The connection, made if need be. Raises DatabaseAwayError, also for what is lost inside.

        Other database errors pass through, and the connection stays.
        """
        self.busy_since = time.monotonic()
        try:
            with self._watched(self._open()) as connection:
                yield connection
        finally:
            self.busy_since = None

    @contextmanager
    def _watched(self, connection: Connection) -> Generator[Connection, None, None]:
        try:
            yield connection
        except (psycopg.Error, DatabaseUnavailable) as error:
            if not is_connection_lost(error) and not connection.broken:
                raise
            self._lose(error, made=self._made)
            raise DatabaseAwayError(str(error)) from error
        else:
            self._failures = 0

    def pause(self) -> float:
        """Seconds to wait before the next try: full jitter below a ceiling that doubles."""
        ceiling = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._failures, 10))
        return random.uniform(0, ceiling)  # noqa: S311  # not a secret

    def cut(self) -> None:
        """Make a statement that hangs fail now, as if the network had gone."""
        with self._closing:  # a closed connection's descriptor may be somebody else's already
            connection = self._connection
            if connection is None:
                return
            with suppress(OSError, psycopg.Error):
                twin = socket.socket(fileno=os.dup(connection.fileno()))
                with twin:
                    twin.shutdown(socket.SHUT_RDWR)

    def abandon(self) -> None:
        """As `cut`, at the end of the process: what fails now says nothing of the database."""
        self._abandoned = True
        self.cut()

    def close(self) -> None:
        """Close the connection; twice is fine."""
        with self._closing:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _open(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        try:
            connection = connect(self._database, application_name=self._name, deadline_seconds=0.0)
        except (DatabaseUnavailable, psycopg.Error) as error:
            self._lose(error, made=None)
            raise DatabaseAwayError(str(error)) from error
        codec.install(connection)
        self._connection = connection
        self._made = self._state.up()
        return connection

    def _lose(self, error: BaseException, *, made: int | None) -> None:
        self._failures += 1
        if not self._abandoned:
            self._state.down(error, made=made)
        with suppress(psycopg.Error):
            self.close()
