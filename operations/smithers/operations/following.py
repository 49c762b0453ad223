"""Follow a run until it ends, parks, or the follower is asked to leave; lend it a fleet meanwhile.

What is seen is told to an `Audience`; how it is shown is its business.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, TypeAlias

from smithers.observability.logs import Log
from smithers.operations.fleet import LocalFleet
from smithers.operations.interrupts import Interrupts
from smithers.operations.results import EventLine
from smithers.operations.serving import is_dead, serving
from smithers.process.link import DatabaseAwayError, DatabaseState, Link
from smithers.sql import reads
from smithers.sql.rows import Json
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import ENDED_RUNS, RunStatus

Attempt: TypeAlias = tuple[str, int, int]
"""Node id, iteration, and the number of the attempt."""

PAGE: Final = 500
_SHORTEST: Final = 0.05
_LONGEST: Final = 1.0
_LONGEST_IN_TIME: Final = 2.0
_PERSONS: Final = frozenset({"paused", "waiting-approval", "waiting-event"})
_TIMES: Final = frozenset({"waiting-timer", "waiting-quota"})


class Notice(StrEnum):
    """What happens around a run, beside its events."""

    FLEET_STARTED = "fleet-started"
    FLEET_VANISHED = "fleet-vanished"
    WAITS_FOR_LEASE = "waits-for-lease"
    DATABASE_AWAY = "database-away"
    DATABASE_BACK = "database-back"
    BEGUN_BEFORE = "begun-before"
    LEAVING = "leaving"


class Reader(Protocol):
    """Reads what a live view is drawn from; see `reads.read_progress`."""

    def __call__(self, *, keys: Sequence[NodeKey] | None, after: int) -> Json:
        """Rows of `keys`, or all, and the structures after frame `after`."""
        ...


class Audience(Protocol):
    """Who is told what a follower sees."""

    def event(self, event: EventLine) -> None:
        """An entry of the run's log."""

    def notice(self, notice: Notice, detail: str) -> None:
        """Something around the run."""

    def looked(self, claimed: Sequence[Attempt], read: Reader) -> None:
        """All events up to now are told; `claimed` are attempts that run. `read` is good until
        this returns, and costs a statement.
        """


class End(StrEnum):
    """Why a follower stopped following."""

    ENDED = "ended"
    PARKED = "parked"
    INTERRUPTED = "interrupted"


@dataclass(slots=True)
class Follower:
    """Follows one run. `fleet` is started when nobody serves the database; main thread only.

    Events after number `since` are told; without it, those that come from now on.
    """

    run_id: str
    link: Link
    fleet: LocalFleet
    audience: Audience
    interrupts: Interrupts
    park: bool = False
    since: int | None = 0
    _pause: float = _SHORTEST
    _served: bool = False
    _away: bool = False
    _told_left: int | None = None

    def follow(self) -> End:
        """Look until there is an end. Raises OperationError (FLEET_FAILED), psycopg.Error."""
        while not self.interrupts.stop:
            try:
                end = self._look()
            except DatabaseAwayError as error:
                end = None
                self._tell_away(str(error))
                self._pause = max(self._pause, self.link.pause())
            if end is not None:
                return end
            if self.fleet.running:
                self.fleet.tend()
            self.interrupts.wake.wait(self._pause)
        return End.INTERRUPTED

    def look_again(self) -> None:
        """Tell what has happened since the last look, if the database is there."""
        with suppress(DatabaseAwayError):
            while len(self._tell()["events"]) == PAGE:
                pass

    def _look(self) -> End | None:
        watch = self._tell()
        if len(watch["events"]) == PAGE:
            self._pause = 0.0
            return None
        end = self._judge(watch)
        if end is None:
            self._lend(watch)
            self._pace(watch, busy=bool(watch["events"]))
        return end

    def _tell(self) -> Json:
        """Tell a page of events; after the last one, what runs."""
        with self.link.connection() as connection:
            watch = reads.read_watch(connection, self.run_id, since=self.since, limit=PAGE)
            assert watch is not None, "a run is never deleted while it is followed"
            self._tell_back()
            if self.since is None:
                self.since = watch["last_seq"]
                self.audience.notice(
                    Notice.BEGUN_BEFORE, f"{watch['finished']} of {watch['mounted']}"
                )
            for event in watch["events"]:
                self.audience.event(_line(event))
                self.since = event["seq"]
            if len(watch["events"]) < PAGE:
                claimed: list[Attempt] = [
                    (node, n, attempt) for node, n, attempt in watch["claimed"]
                ]
                read = partial(reads.read_progress, connection, self.run_id)
                self.audience.looked(claimed, read)
        return watch

    def _judge(self, watch: Json) -> End | None:
        status = str(watch["status"])
        if RunStatus(status) in ENDED_RUNS:
            return End.ENDED
        if status in _PERSONS or (status == "waiting-quota" and watch["resets_at"] is None):
            return End.PARKED
        return End.PARKED if self.park and status in _TIMES else None

    def _lend(self, watch: Json) -> None:
        """Start a fleet when nobody else serves, and say when a dead owner's lease holds it up."""
        processes: list[Json] = watch["processes"]
        self._tell_lease(watch, processes)
        if self.fleet.running:
            return
        if serving(processes).serves():
            self._served = True
            return
        if self._served:
            self.audience.notice(Notice.FLEET_VANISHED, "")
        self.fleet.start()
        self.audience.notice(Notice.FLEET_STARTED, str(self.fleet.log))

    def _tell_lease(self, watch: Json, processes: list[Json]) -> None:
        gone = [each for each in processes if each["id"] == watch["owner"] and is_dead(each)]
        left = watch["owner_left"]
        if not gone or left is None or left <= 0:
            return
        seconds = int(left) + 1
        if self._told_left is None or seconds <= self._told_left - 5:
            self._told_left = seconds
            words = f"{watch['owner_label']} is gone: {seconds} s of its lease are left"
            self.audience.notice(Notice.WAITS_FOR_LEASE, words)

    def _pace(self, watch: Json, *, busy: bool) -> None:
        longest = _LONGEST_IN_TIME if watch["status"] in _TIMES else _LONGEST
        self._pause = _SHORTEST if busy else min(longest, max(self._pause, _SHORTEST / 2) * 2)

    def heard(self) -> None:
        """A notification came: something may have changed. For any thread."""
        self._pause = _SHORTEST
        self.interrupts.wake.set()

    def _tell_away(self, why: str) -> None:
        if not self._away:
            self._away = True
            self.audience.notice(Notice.DATABASE_AWAY, why)

    def _tell_back(self) -> None:
        if self._away:
            self._away = False
            self.audience.notice(Notice.DATABASE_BACK, "")


def _line(event: Json) -> EventLine:
    fields: Json = {**event, "at": datetime.fromisoformat(event["at"])}
    return EventLine(**fields)


class Unlogged(DatabaseState):
    """A state that nobody logs: the follower tells its audience itself."""

    def __init__(self) -> None:
        super().__init__(Log())

    def up(self) -> int:
        """A connection was made."""
        self.is_up = True
        return 0

    def down(self, error: BaseException, *, made: int | None) -> None:
        """A connection was lost."""
        del error, made
        self.is_up = False
