"""Which run a person means: its id, or the beginning of it when no other begins so."""

from __future__ import annotations

from typing import Final

from smithers.operations.ids import known_run_id
from smithers.sql import reads
from smithers.sql.calls import Connection
from smithers.sql.errors import UnknownRun

RUN_AMBIGUOUS: Final = "RUN_AMBIGUOUS"


def resolve(connection: Connection, text: str) -> str:
    """Give the id of the run that is called `text`, or of the only one whose id begins with it.

    Raises UnknownRun: RUN_UNKNOWN, RUN_AMBIGUOUS with those that it could be.
    """
    found = reads.read_run_ids(connection, known_run_id(text))
    if text in found or len(found) == 1:
        return found[0]
    if not found:
        raise UnknownRun(
            "RUN_UNKNOWN", f"there is no run {text!r}", hint="smithers ps --all lists the runs"
        )
    raise UnknownRun(
        RUN_AMBIGUOUS,
        f"{text!r} could be {', '.join(found[:5])}{' or another' if len(found) > 5 else ''}",
        details={"runs": found[:5]},
        hint="type more of the id",
    )
