"""The scheduler's loop: what is due is fired, dirty runs are taken and handed to lanes."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from smithers.scheduler.advance import OwnedRun
from smithers.scheduler.held import Held
from smithers.scheduler.lanes import Lanes
from smithers.scheduler.pace import Pace
from smithers.scheduler.reports import Outcome, Report
from smithers.sql import scheduler as sql
from smithers.sql.calls import Connection

_BATCH: Final = 64  # new runs that one take adds at most
_DUE_BATCH: Final = 100


class Loop:
    """The state of one scheduler, from one registration to its end; for one thread.

    `owner` is the process row that stamps its runs. `reports` is where lanes say what they did.
    """

    def __init__(
        self,
        owner: int,
        lanes: Lanes,
        reports: queue.SimpleQueue[Report],
        *,
        resume_limit: int,
    ) -> None:
        self._owner = owner
        self._lanes = lanes
        self._reports = reports
        self._resume_limit = resume_limit
        self._held = Held()
        self._pace = Pace()

    def notified(self) -> None:
        """A notification came, or the connection that listens was made anew."""
        self._pace.wake()

    def was_away(self, settle_seconds: float) -> None:
        """The database was away: others get this long to beat before their runs look free."""
        self._pace = Pace(take_after=settle_seconds)

    def round(self, connection: Connection, *, listening: bool) -> float:
        """Do what is to be done now; return the seconds until there is more, unless woken.

        Raises psycopg.Error when the database is away: the next round goes on from there.
        """
        self._read_reports()
        for run in self._held.due():
            self._begin(run)
        if self._pace.fire_is_due():
            self._pace.fired(sql.fire_due(connection, limit=_DUE_BATCH))
        if self._pace.take_is_due():
            self._pace.took(self._take(connection), listening=listening)
        if self._pace.look_is_due():
            self._pace.looked(sql.next_due(connection))
        self._give_up_idle(connection)
        self._lanes.tend()
        looks = (self._pace.sleep(), self._held.next_look(), self._lanes.next_look())
        return min(look for look in looks if look is not None)

    def drain(self, wait: Callable[[], bool]) -> list[str]:
        """Let the lanes end the steps that they are at; return the runs to be handed back.

        `wait` returns when a lane has reported, or after a while: True to go on waiting.
        """
        queued = [run.run_id for run in self._lanes.clear()]
        self._held.forget(queued)
        while self._held.busy() and wait():
            self._read_reports(final=True)
        return [*queued, *self._held.clear()]

    def _take(self, connection: Connection) -> int:
        taken = sql.take_runs(
            connection,
            self._owner,
            uuid4(),
            # Runs that a lane has are dirty until it commits, and are given again.
            limit=_BATCH + len(self._held),
            resume_limit=self._resume_limit,
        )
        begun = 0
        for row in taken:
            token = (self._owner, row.epoch, row.claim_id)
            begun += self._begin(OwnedRun(row.run_id, row.source_hash, *token, row.stopping))
        return begun

    def _begin(self, run: OwnedRun) -> bool:
        if not self._held.begin(run):
            return False
        self._lanes.dispatch(run)
        return True

    def _read_reports(self, *, final: bool = False) -> None:
        """Note what lanes have done; `final`: nothing is begun any more."""
        while True:
            try:
                self._note(self._reports.get_nowait(), final=final)
            except queue.Empty:
                return

    def _note(self, report: Report, *, final: bool) -> None:
        self._pace.worked()
        if report.outcome is Outcome.AGAIN and not final:
            self._held.again(report.run, report.delay)
            return
        gone = report.outcome is Outcome.GONE
        if self._held.drop(report.run) if gone else self._held.rest(report.run):
            self._pace.wake()

    def _give_up_idle(self, connection: Connection) -> None:
        idle = self._held.idle()
        if idle:
            sql.give_up_runs(connection, self._owner, idle)
            self._held.forget(idle)
