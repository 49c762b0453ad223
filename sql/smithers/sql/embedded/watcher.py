"""The process that stops a server which nobody uses. Run as a module with the home folder.

It looks every few seconds whether a client is connected or has been since the last look, and
stops the server under its lock after the seconds that `idle` tells, which it reads anew each
time. It ends with its server, or when it is told 0; always under the lock, so that a starter,
who holds it, can rely on the watcher that it sees. Killing it harms nothing: the next command
that uses the server starts another.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded.idle import idle_file, read_idle, write_idle
from smithers.sql.embedded.lock import hold, locked
from smithers.sql.embedded.place import Place
from smithers.sql.embedded.processes import serves, wait_until_gone
from smithers.sql.embedded.stale import read_pid

HOLD_SECONDS = 1.0
LONGEST_PAUSE = 5.0
LOST_PAUSE = 0.5
LEAVE_SECONDS = 2.0
STOP_SECONDS = 30.0

_LOOK = """
select (select count(*) from pg_stat_activity
         where backend_type in ('client backend', 'walsender') and pid <> pg_backend_pid()),
       (select sum(sessions) from pg_stat_database)
"""


class Watcher:
    """Watches one server through a connection of its own."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection: psycopg.Connection[Any] | None = None
        self._sessions = -1
        self._quiet_since = time.monotonic()

    def run(self) -> None:
        """Return when there is nothing left to watch."""
        while True:
            seconds = read_idle(self._place).seconds
            quiet = self._is_quiet()
            if quiet is None or seconds == 0:
                with locked(self._place):
                    if self._has_nothing_to_do():
                        return
            elif quiet and time.monotonic() - self._quiet_since >= seconds:
                with locked(self._place):
                    if self._stop(seconds):
                        return
            self._pause(min(LONGEST_PAUSE, max(0.1, seconds / 5)))

    def _is_quiet(self) -> bool | None:
        """Whether nobody was connected since the last look; None when the server doesn't answer."""
        try:
            if self._connection is None:
                self._connection = psycopg.connect(
                    self._place.dsn(),
                    autocommit=True,
                    connect_timeout=5,
                    application_name="smithers idle watcher",
                )
            row = self._connection.execute(_LOOK).fetchone()
        except psycopg.Error:
            self._leave()
            return None
        clients, sessions = row or (1, 0)
        quiet = clients == 0 and sessions == self._sessions
        self._sessions = sessions
        if not quiet:
            self._quiet_since = time.monotonic()
        return quiet

    def _pause(self, seconds: float) -> None:
        """Sleep, but no longer than the server lives: its end closes our connection."""
        if self._connection is None:
            time.sleep(min(seconds, LOST_PAUSE))
        else:
            select.select([self._connection], [], [], seconds)

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _has_nothing_to_do(self) -> bool:
        return self._pid() is None or read_idle(self._place).seconds == 0

    def _pid(self) -> int | None:
        pid = read_pid(self._place)
        return pid if pid is not None and serves(pid, self._place.data) else None

    def _stop(self, seconds: float) -> bool:
        """Stop the server if it is quiet still; under the lock, so nobody starts it meanwhile.

        Who has just connected without the lock may end its work first; only who stays is cut
        off, as by a crash, and starts the server again.
        """
        pid = self._pid()
        idle = read_idle(self._place)
        if pid is None or idle.seconds != seconds or not self._is_quiet():
            return False
        self._leave()
        write_idle(self._place, replace(idle, asleep=True))
        for how, patience in ((signal.SIGTERM, LEAVE_SECONDS), (signal.SIGINT, STOP_SECONDS)):
            with suppress(ProcessLookupError):
                os.kill(pid, how)
            if wait_until_gone(pid, patience):
                self._place.drop_socket_dir()
                _say(f"stopped the server: nobody was connected for {seconds:g} s")
                return True
        return False


def _say(what: str) -> None:
    """Into the server's log, which is our standard error."""
    print(f"smithers: {what}", file=sys.stderr, flush=True)  # noqa: T201


def main(home: Path) -> None:
    """Watch, if nobody does. A home that was moved or removed ends it."""
    place = Place(home)
    with suppress(FileNotFoundError, DatabaseUnavailable), idle_file(place).open("r+b") as file:
        if hold(file, HOLD_SECONDS):
            Watcher(place).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
