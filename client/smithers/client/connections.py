"""The connections of a client: a few, opened when needed, each lent to one thread at a time.

A connection for each call would cost more than most calls do. A pool of psycopg_pool has threads,
which a fork loses; it hides why it can't connect behind a timeout, and starts no embedded server.
So this is a list of idle connections: the last one used is lent first, after a question that
shows whether it still lives, and a new one is opened as every command of Smithers opens its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from smithers.client.errors import CLIENT_CLOSED, CONNECTIONS_BUSY, ClientError
from smithers.client.forking import renew_after_fork
from smithers.operations.session import Session
from smithers.process.database import open_connection
from smithers.process.settings import Settings
from smithers.sql import codec
from smithers.sql.connect import reached
from smithers.sql.database_errors import DatabaseUnavailable

T = TypeVar("T")

_IDLE_SECONDS: Final = 300.0  # a firewall may have forgotten an older one without a word


@dataclass(frozen=True, slots=True)
class _Idle:
    session: Session
    since: float


class Connections:
    """Lends sessions to any thread. At most `limit` are out at a time.

    `patience` is how many seconds a caller waits for a connection that is not free, and for a
    database that may still come up.
    """

    def __init__(self, settings: Settings, *, limit: int, patience: float) -> None:
        self.settings = settings
        self._limit = limit
        self._patience = patience
        self._closed = False
        self._inherited: list[_Idle] = []
        self._idle: list[_Idle] = []
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(limit)
        renew_after_fork(self)

    def begin_anew(self) -> None:
        """Keep the parent's connections open, but never use them: to close one says goodbye."""
        self._inherited += self._idle
        self._idle = []
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(self._limit)

    @contextmanager
    def lend(self) -> Generator[Session]:
        """A session for one call. Raises DatabaseUnavailable, also when the connection is lost
        inside, SchemaError, and ClientError (CLIENT_CLOSED, CONNECTIONS_BUSY).
        """
        if not self._free.acquire(timeout=self._patience):
            raise ClientError(
                CONNECTIONS_BUSY,
                f"all {self._limit} connections were in use for {self._patience:g} s",
                hint="give the client more: Client(max_connections=)",
            )
        try:
            opened = self._take()
            try:
                with reached(opened.database):
                    yield opened
            finally:
                self._give_back(opened)
        finally:
            self._free.release()

    def repeat(self, ask: Callable[[Session], T]) -> T:
        """Ask, and once more if the connection was lost meanwhile: for reads, and for what has an
        idempotency key. Raises as `lend`.
        """
        with self.lend() as opened, suppress(DatabaseUnavailable), reached(opened.database):
            return ask(opened)
        with self.lend() as opened:
            return ask(opened)

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back; twice is fine."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for each in idle:
            each.session.connection.close()

    def _take(self) -> Session:
        while (session := self._pop()) is not None:
            try:
                session.connection.execute("")
            except psycopg.Error:
                session.connection.close()
            else:
                return session
        database, connection = open_connection(
            self.settings, application_name="smithers client", deadline_seconds=self._patience
        )
        codec.install(connection)
        return Session(self.settings, database, connection)

    def _pop(self) -> Session | None:
        now = time.monotonic()
        with self._lock:
            if self._closed:
                raise ClientError(CLIENT_CLOSED, "the client is closed", hint="make another one")
            while self._idle:
                found = self._idle.pop()
                if now - found.since < _IDLE_SECONDS:
                    return found.session
                found.session.connection.close()
        return None

    def _give_back(self, session: Session) -> None:
        connection = session.connection
        usable = (
            not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE
        )
        with self._lock:
            if usable and not self._closed:
                self._idle.append(_Idle(session, time.monotonic()))
                return
        connection.close()
