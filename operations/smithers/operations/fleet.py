"""A fleet of one's own: scheduler, worker and supervisor as children of this process.

    with local_fleet(settings, log, nurseries) as fleet:
        fleet.start()
        while …: fleet.tend()

Each is a fork of a nursery and a session of its own, so that a terminal's Ctrl-C reaches this
process alone. When this process dies its nursery dies, and the kernel asks each to end: SIGTERM
and not SIGKILL, what runs may finish within its grace. Start them from the main thread.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from smithers.operations.errors import FLEET_FAILED, OperationError
from smithers.operations.nurseries import Nurseries
from smithers.process.nursery import Born
from smithers.process.settings import Settings

SLOTS: Final = 4
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0
_HEALTHY_SECONDS: Final = 10.0
_MOST_FAILURES: Final = 6
_HURRY_AFTER: Final = 3.0
_KILL_AFTER: Final = 5.0
_LOOK: Final = 0.02


@dataclass(slots=True)
class Member:
    """One role of the fleet, and the process that plays it now."""

    role: str
    words: tuple[str, ...]
    process: Born | None = None
    started: float = 0.0
    failures: int = 0
    retry_at: float = 0.0
    code: int | None = None

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.poll() is None


@dataclass
class LocalFleet:
    """The three processes; what they print is appended to `log`."""

    settings: Settings
    log: Path
    nurseries: Nurseries
    slots: int = SLOTS
    on_restart: Callable[[str, int], None] = lambda _role, _code: None
    members: list[Member] = field(default_factory=list[Member])

    @property
    def running(self) -> bool:
        """Whether the fleet was started and not stopped."""
        return bool(self.members)

    @property
    def pids(self) -> list[int]:
        """The living processes."""
        return [each.process.pid for each in self.members if each.process and each.alive]

    def start(self) -> None:
        """Start all roles; nothing happens when they have been."""
        if self.members:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.members = [
            Member("scheduler", ("scheduler",)),
            Member("worker", ("worker", "--slots", str(self.slots))),
            Member("supervisor", ("supervise", "--all")),
        ]
        for member in self.members:
            self._spawn(member)

    def tend(self) -> None:
        """Start again what has died, after a pause that doubles.

        Raises OperationError (FLEET_FAILED) for a role that dies at once, time after time.
        """
        now = time.monotonic()
        for member in self.members:
            if member.alive:
                if member.failures and now - member.started > _HEALTHY_SECONDS:
                    member.failures = 0
            elif member.process is not None:
                self._died(member, now)
            elif now >= member.retry_at:
                self._spawn(member)

    def stop(self, *, hurried: Callable[[], bool] = lambda: False, grace: float) -> None:
        """Drain: SIGTERM, again after `grace` seconds or when hurried, then SIGKILL."""
        members, self.members = [each for each in self.members if each.alive], []
        _signal(members, signal.SIGTERM)
        if not _wait(members, grace, hurried):
            _signal(members, signal.SIGTERM)
            if not _wait(members, _KILL_AFTER):
                _signal(members, signal.SIGKILL)
                _wait(members, _KILL_AFTER)
        for member in members:
            if member.process is not None:
                member.process.close()

    def _spawn(self, member: Member) -> None:
        with self.log.open("ab") as log:
            member.process = self.nurseries.bear_role(member.words, output=log.fileno())
        member.started = time.monotonic()

    def _died(self, member: Member, now: float) -> None:
        assert member.process is not None
        member.code = member.process.poll()
        member.process.close()
        member.process = None
        lived = now - member.started
        member.failures = 1 if lived > _HEALTHY_SECONDS else member.failures + 1
        if member.failures >= _MOST_FAILURES:
            raise OperationError(
                FLEET_FAILED,
                f"the {member.role} ends again and again (exit code {member.code})",
                details={"role": member.role, "code": member.code, "log": str(self.log)},
                hint=f"{self.log} holds its last words: {_last_line(self.log)}",
            )
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (member.failures - 1))
        member.retry_at = now + pause
        self.on_restart(member.role, member.code or 0)


@contextmanager
def local_fleet(
    settings: Settings, log: Path, nurseries: Nurseries, *, slots: int = SLOTS
) -> Generator[LocalFleet]:
    """A fleet that isn't started yet, and is stopped with the block."""
    fleet = LocalFleet(settings, log, nurseries, slots)
    try:
        yield fleet
    finally:
        fleet.stop(grace=_HURRY_AFTER)


def _signal(members: Sequence[Member], number: signal.Signals) -> None:
    for member in members:
        if member.process is not None:
            member.process.signal(number)


def _wait(
    members: Sequence[Member], seconds: float, hurried: Callable[[], bool] = lambda: False
) -> bool:
    deadline = time.monotonic() + seconds
    while any(member.alive for member in members):
        if time.monotonic() > deadline or hurried():
            return False
        time.sleep(_LOOK)
    return True


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace")[-2_000:].strip().splitlines()
    except OSError:
        return "(unreadable)"
    return lines[-1] if lines else "(empty)"
