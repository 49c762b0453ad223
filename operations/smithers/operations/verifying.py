"""Check the invariants of the database: what must hold in every committed state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from smithers.operations.ids import known_run_id
from smithers.operations.looking import unknown_run
from smithers.operations.results import Violation
from smithers.sql import reads
from smithers.sql.calls import Connection
from smithers.sql.rows import FrameBody
from smithers.workflow.errors import SnapshotError
from smithers.workflow.frame import reconstruct
from smithers.workflow.snapshot import FrameRow

FRAMES_RECONSTRUCT: Final = "frames-reconstruct"
LIMIT: Final = 200
"""Violations listed of one invariant: more of the same say nothing new."""


def verify(connection: Connection, *, run_id: str | None = None) -> list[Violation]:
    """List what breaks an invariant, in one run or in all; nothing is the good answer.

    Everything is read from one snapshot, so that a database that is being worked on is as
    good as one that rests. Raises UnknownRun.
    """
    if run_id is not None and not reads.run_exists(connection, known_run_id(run_id)):
        raise unknown_run(run_id)
    found: list[Violation] = []
    with reads.snapshot(connection, timeout="10min"):
        for invariant in reads.invariants():
            for row in reads.read_violations(connection, invariant, run_id=run_id, limit=LIMIT):
                place = (row.run_id, row.node_id, row.iteration)
                found.append(Violation(invariant, *place, row.detail))
        found += _frames(reads.read_frame_bodies(connection, run_id))
    return found


def invariants() -> tuple[str, ...]:
    """Name what is checked."""
    return tuple(sorted((*reads.invariants(), FRAMES_RECONSTRUCT)))


def _frames(bodies: list[tuple[str, FrameBody]]) -> Iterator[Violation]:
    """Put the structures of each run together, frame after frame."""
    for run_id, rows in groupby(bodies, key=lambda each: each[0]):
        try:
            reconstruct([FrameRow(f.frame_no, f.base_frame_no, f.body) for _, f in rows])
        except SnapshotError as error:
            yield Violation(FRAMES_RECONSTRUCT, run_id, None, None, error.message)
