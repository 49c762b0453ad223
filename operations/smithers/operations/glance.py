"""One quick look at where a run is: what somebody who waits for it asks again and again."""

from __future__ import annotations

from dataclasses import dataclass

from smithers.operations.ids import known_run_id
from smithers.operations.looking import unknown_run
from smithers.operations.results import Result
from smithers.sql import reads
from smithers.sql.calls import Connection
from smithers.workflow.states import ENDED_RUNS, RunStatus


@dataclass(frozen=True, slots=True)
class Glance(Result):
    """The stored state of a run, and the number of its last event."""

    run_id: str
    status: RunStatus
    last_seq: int

    @property
    def ended(self) -> bool:
        """Whether it has finished, failed, or was cancelled or continued."""
        return self.status in ENDED_RUNS

    @property
    def rests(self) -> bool:
        """Whether it has ended, or is rows and no process until something wakes it."""
        return self.status is not RunStatus.RUNNING


def glance(connection: Connection, run_id: str) -> Glance:
    """Look at one run, by one statement. Raises UnknownRun."""
    watch = reads.read_watch(connection, known_run_id(run_id))
    if watch is None:
        raise unknown_run(run_id)
    return Glance(run_id, RunStatus(watch["status"]), int(watch["last_seq"]))
