"""The detached engine: a process of its own that lends the database a fleet while there is work.

It is started by `up --detach`, whose run it admits first, and by a decision about a parked run
of an embedded database. At most one engine of a home folder serves: a file lock says which. It
lets the lock go *before* its last look for work, so whoever finds the lock taken can rely on
that look.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from smithers.operations.fleet import LocalFleet, local_fleet
from smithers.operations.following import Unlogged
from smithers.operations.interrupts import Interrupts
from smithers.operations.nurseries import Nurseries
from smithers.operations.serving import serving
from smithers.process.link import DatabaseAwayError, Link
from smithers.process.settings import Settings
from smithers.sql import reads
from smithers.sql.connect import Database
from smithers.sql.rows import Json

QUEUES: Final = ("default",)
_LOOK_SECONDS: Final = 0.5
_LONGEST_LOOK: Final = 2.0
_GRACE_AT_END: Final = 3.0
_GRACE_AT_INTERRUPT: Final = 30.0


@dataclass(slots=True)
class EngineLock:
    """Which engine serves a database from this home folder; freed by the kernel at the latest."""

    path: Path
    _fd: int = -1

    @classmethod
    def of(cls, settings: Settings, database: Database) -> EngineLock:
        """The lock for a database; another database in the same folder has its own."""
        name = (
            "embedded" if database.embedded else hashlib.sha256(database.dsn.encode()).hexdigest()
        )
        return cls(settings.home / "logs" / f".engine-{name[:12]}.lock")

    def take(self) -> bool:
        """Take the lock if nobody has it."""
        if self._fd >= 0:
            return True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def release(self) -> None:
        """Let it go; twice is fine."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def is_taken(self) -> bool:
        """Whether some engine has it."""
        free = self.take()
        self.release()
        return not free


@dataclass(slots=True)
class Engine:
    """Serves a database while there is work in it. Main thread only."""

    link: Link
    fleet: LocalFleet
    lock: EngineLock
    interrupts: Interrupts
    park: bool = False
    say: Callable[[str], None] = field(default=lambda _line: None)
    _pause: float = _LOOK_SECONDS

    def serve(self) -> None:
        """Return when nothing is to be done, or when another engine does it.

        Raises OperationError (FLEET_FAILED).
        """
        while not self.interrupts.stop and self.lock.take():
            self._serve_while_needed()
            self._stop_fleet()
            self.lock.release()
            if not self.interrupts.stop and not self._demand():
                return

    def _serve_while_needed(self) -> None:
        while not self.interrupts.stop:
            try:
                demand = self._read()
            except DatabaseAwayError:
                self._tend()
            else:
                if not self._wants(demand):
                    return
                self._lend(demand)
                self._tend()
            self.interrupts.wake.wait(self._pause)
            self._pause = min(_LONGEST_LOOK, self._pause * 1.5)

    def _demand(self) -> bool:
        """Look once more, with nothing left running."""
        while not self.interrupts.stop:
            try:
                return self._wants(self._read())
            except DatabaseAwayError:
                self.interrupts.wake.wait(self.link.pause())
        return False

    def _read(self) -> Json:
        with self.link.connection() as connection:
            return reads.read_demand(connection, queues=QUEUES)

    def _wants(self, demand: Json) -> bool:
        return bool(demand["active"]) or (demand["due_in"] is not None and not self.park)

    def _lend(self, demand: Json) -> None:
        if not self.fleet.running and not serving(demand["processes"]).serves():
            self.say(f"nobody serves the database: starting a fleet (log {self.fleet.log})")
            self.fleet.start()
        if demand["active"]:
            self._pause = _LOOK_SECONDS

    def _tend(self) -> None:
        if self.fleet.running:
            self.fleet.tend()

    def _stop_fleet(self) -> None:
        grace = _GRACE_AT_INTERRUPT if self.interrupts.stop else _GRACE_AT_END
        self.fleet.stop(grace=grace, hurried=self.interrupts.hurried)


def serve(
    settings: Settings,
    database: Database,
    interrupts: Interrupts,
    log: Path,
    nurseries: Nurseries,
    *,
    park: bool = False,
    say: Callable[[str], None] = lambda _line: None,
) -> None:
    """Serve a database while there is work. Main thread only. Raises OperationError."""
    link = Link(database, name="smithers engine", state=Unlogged())
    lock = EngineLock.of(settings, database)
    with local_fleet(settings, log, nurseries) as fleet:
        try:
            Engine(link, fleet, lock, interrupts, park=park, say=say).serve()
        finally:
            lock.release()
            link.close()
