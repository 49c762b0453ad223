"""The scheduler's loop: what is due is fired, dirty runs are taken and handed to lanes."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from smithers.scheduler.advance import OwnedRun
from smithers.scheduler.held import Held
from smithers.scheduler.lane import Lane, LaneTools
from smithers.scheduler.lanes import Lanes
from smithers.scheduler.pace import Pace
from smithers.scheduler.reports import Outcome, Report
from smithers.scheduler.waiting import Waiting
from smithers.sql import scheduler as sql
from smithers.sql.calls import Connection

_BATCH: Final = 64  # new runs that one take adds at most
_DUE_BATCH: Final = 100


class Loop:
    """The state of one scheduler. Only the thread that made it calls it, but for `report`."""

    def __init__(self, *, resume_limit: int, wake: Callable[[], None]) -> None:
        self._resume_limit = resume_limit
        self._wake = wake
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._owner: int | None = None
        self._held = Held()
        self._pace = Pace()
        self._lanes: Lanes | None = None

    def equip(self, tools: LaneTools) -> None:
        """Give the lanes what they need; before the first round."""

        def open_lane(source_hash: str, waiting: Waiting) -> Lane:
            return Lane(source_hash, waiting, tools)

        self._lanes = Lanes(open_lane)

    def report(self, report: Report) -> None:
        """Take what a lane says about a run; for any thread."""
        self._reports.put(report)
        self._wake()

    def notified(self) -> None:
        """A notification came, or the connection that listens was made anew."""
        self._pace.wake()

    def round(self, connection: Connection, owner: int, *, listening: bool) -> float:
        """Do what is to be done now; return the seconds until there is more unless woken.

        `owner` is this process's row; a new one means that the old was declared dead. Raises
        psycopg.Error when the database is away: the next round goes on where this one was.
        """
        lanes = self._ready_lanes()
        if owner != self._owner:
            self._become(owner)
        self._read_reports()
        for run in self._held.due():
            self._begin(run)
        if self._pace.fire_is_due():
            self._pace.fired(sql.fire_due(connection, limit=_DUE_BATCH))
        if self._pace.take_is_due():
            self._pace.took(self._take(connection, owner), listening=listening)
        if self._pace.look_is_due():
            self._pace.looked(sql.next_due(connection))
        self._give_up_idle(connection, owner)
        lanes.tend()
        looks = (self._pace.sleep(), self._held.next_look(), lanes.next_look())
        return min(look for look in looks if look is not None)

    def drain(self, connection: Connection, owner: int, wait: Callable[[], bool]) -> None:
        """Let the lanes end the steps that they are at, then hand back every run.

        `wait` returns when a lane has reported or after a while: True to go on waiting. Raises
        psycopg.Error; the runs are free then as soon as this process's row says that it has ended.
        """
        lanes = self._ready_lanes()
        self._held.forget(run.run_id for run in lanes.clear())
        while self._held.busy() and wait():
            self._read_reports(final=True)
        sql.give_up_runs(connection, owner, self._held.clear())

    def close(self) -> None:
        """End the lanes and their children; after it the loop can't be used."""
        self._ready_lanes().close(seconds=1.0)

    def _ready_lanes(self) -> Lanes:
        assert self._lanes is not None, "equip comes first"
        return self._lanes

    def _become(self, owner: int) -> None:
        """Start anew under a process row; what the old one owned is up to whoever takes it."""
        self._ready_lanes().clear()
        self._held.clear()
        self._owner = owner
        self._pace.wake()

    def _take(self, connection: Connection, owner: int) -> int:
        taken = sql.take_runs(
            connection,
            owner,
            uuid4(),
            # Runs that a lane has are dirty until it commits, and are given again.
            limit=_BATCH + len(self._held),
            resume_limit=self._resume_limit,
        )
        begun = 0
        for row in taken:
            run = OwnedRun(
                row.run_id, row.source_hash, owner, row.epoch, row.claim_id, row.stopping
            )
            begun += self._begin(run)
        return begun

    def _begin(self, run: OwnedRun) -> bool:
        if not self._held.begin(run):
            return False
        self._ready_lanes().dispatch(run)
        return True

    def _read_reports(self, *, final: bool = False) -> None:
        """Note what lanes have done; `final`: nothing is begun any more."""
        while True:
            try:
                report = self._reports.get_nowait()
            except queue.Empty:
                return
            if report.run.owner == self._owner:
                self._note(report, final=final)

    def _note(self, report: Report, *, final: bool) -> None:
        self._pace.worked()
        if report.outcome is Outcome.AGAIN and not final:
            self._held.again(report.run, report.delay)
            return
        gone = report.outcome is Outcome.GONE
        if self._held.drop(report.run) if gone else self._held.rest(report.run):
            self._pace.wake()

    def _give_up_idle(self, connection: Connection, owner: int) -> None:
        idle = self._held.idle()
        if idle:
            sql.give_up_runs(connection, owner, idle)
            self._held.forget(idle)
