"""What became of a run in a lane, and what each kind of error makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import psycopg

from smithers.process.link import DatabaseAwayError
from smithers.scheduler.advance import OwnedRun
from smithers.scheduler.render_errors import RendererKilled
from smithers.sql.errors import Fenced, ProcessExpired, UnknownRun, is_transient
from smithers.workflow.errors import SmithersError

STEP_REFUSED: Final = "STEP_REFUSED"
MAX_TRIES: Final = 5
_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 5.0


class Outcome(Enum):
    """Whose a run is after a lane had it."""

    OURS = "ours"  # nothing to decide now; work is in flight
    GONE = "gone"  # parked, ended, or another's
    AGAIN = "again"  # ours, to be stepped again


@dataclass(frozen=True, slots=True)
class Report:
    """What a lane says about a run. `tries` failed steps in a row, for `Outcome.AGAIN`."""

    run: OwnedRun
    outcome: Outcome
    tries: int = 0

    @property
    def delay(self) -> float:
        """Seconds until the run should be stepped again: none after a success."""
        if not self.tries:
            return 0.0
        return float(min(_FIRST_DELAY * 2 ** (self.tries - 1), _LONGEST_DELAY))


class Remedy(Enum):
    """What to do about an error of a step."""

    DROP = "drop"  # the run isn't ours any more: write nothing
    FAIL = "fail"  # its own code or data is at fault: fail the run
    RETRY = "retry"  # the database or this machine is at fault: the same step, later
    RETRY_SOME = "retry some"  # nobody knows: a few tries, then fail the run


def remedy(error: Exception) -> Remedy:
    """Sort an error of a step.

    A lost connection is retried though its commit may have happened: the next load shows it.
    """
    match error:
        case Fenced() | UnknownRun() | ProcessExpired():
            return Remedy.DROP
        case RendererKilled():
            return Remedy.RETRY_SOME
        case SmithersError():
            return Remedy.FAIL
        case DatabaseAwayError() | OSError():  # a full disk, no process to be had
            return Remedy.RETRY
        case psycopg.Error() if is_transient(error):
            return Remedy.RETRY
        case _:
            return Remedy.RETRY_SOME
