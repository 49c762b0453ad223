"""One step of one run: load its rows, render, commit one frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol
from uuid import UUID

from smithers.observability.metrics import METRICS
from smithers.scheduler.completions import with_completions
from smithers.scheduler.shapes import Shapes
from smithers.sql import scheduler as sql
from smithers.sql.calls import Connection
from smithers.sql.rows import Json
from smithers.workflow.states import RunStatus


@dataclass(frozen=True, slots=True)
class OwnedRun:
    """A run that this process advances; (owner, epoch, claim_id) is its token.

    `stopping`: it was asked to pause or cancel when it was taken.
    """

    run_id: str
    source_hash: str
    owner: int
    epoch: int
    claim_id: UUID
    stopping: bool

    def token(self) -> Json:
        """Return the token as the stored functions take it."""
        return {
            "run_id": self.run_id,
            "owner": self.owner,
            "epoch": self.epoch,
            "claim_id": str(self.claim_id),
        }


@dataclass(frozen=True, slots=True)
class Step:
    """What one step left: the run's status, whether facts have come since it was loaded, its frame.

    `ready` tasks were made claimable, `claimed` are those that a fused claim took. `frame_no` is
    None when no frame was committed.
    """

    status: RunStatus
    dirty: bool = False
    ready: int = 0
    frame_no: int | None = None
    claimed: tuple[Json, ...] = ()

    @property
    def owned(self) -> bool:
        """Whether the run is still ours: a commit that parks or ends a run gives it up."""
        return self.status is RunStatus.RUNNING


class Renders(Protocol):
    """Turns the rows of a run into the document of its next frame (`Renderer` does)."""

    def render(self, snapshot: Json, connection: Connection) -> Json:
        """Return the frame document. Raises SmithersError when the run has to fail."""
        ...


def advance(
    connection: Connection,
    run: OwnedRun,
    renderer: Renders,
    shapes: Shapes,
    *,
    completions: Sequence[Json] = (),
    claim: Json | None = None,
) -> Step:
    """Do one step of a run, in one commit.

    Fused: `completions` are attempts of this run that end with the frame, `claim` {owner,
    claim_id, queues, limit, free, lease} takes tasks in the same commit. Raises Fenced when
    another process has the run (or one of the completions isn't accepted), SmithersError when the
    run has to fail for what its code did, psycopg.Error when nothing is known but that the step
    can be repeated.
    """
    if run.stopping and not completions:
        return Step(RunStatus(sql.settle_request(connection, run.token())))
    began = monotonic()
    snapshot = with_completions(sql.load_run(connection, run.run_id), completions)
    frame = renderer.render(snapshot, connection)
    METRICS.renders.observe(monotonic() - began)
    shapes.register(connection, frame["outputs"])
    fused: Json = {"completions": list(completions)}
    if claim is not None:
        fused["claim"] = claim
    committed = sql.commit_frame(
        connection,
        {
            **frame,
            **run.token(),
            **fused,
            "wanted_seq": snapshot["run"]["wanted_seq"],
        },
    )
    METRICS.frames.add()
    return Step(
        status=RunStatus(committed.status),
        dirty=committed.dirty,
        ready=committed.ready,
        frame_no=committed.frame_no,
        claimed=tuple(committed.claimed or ()),
    )
