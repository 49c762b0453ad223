"""The scheduler's transactions: take dirty runs, load, T2 commit frame, T9 due rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from smithers.sql import codec
from smithers.sql.calls import Connection, perform, rows, scalar
from smithers.sql.rows import CommittedFrame, FrameBody, Json, TakenRun


def take_runs(
    connection: Connection, owner: int, claim_id: UUID, *, limit: int, resume_limit: int
) -> list[TakenRun]:
    """Take dirty runs: those this owner has already, and those that nobody alive owns."""
    return rows(
        connection,
        TakenRun,
        "select * from smithers_p1.take_runs(%s, %s, %s, %s)",
        owner,
        claim_id,
        limit,
        resume_limit,
    )


def load_run(connection: Connection, run_id: str) -> Json:
    """Load all that a render reads, in one snapshot; outputs as {node_id: {iteration: fields}}."""
    document: Json = scalar(connection, "select smithers_p1.load_run(%s)", run_id)
    outputs: dict[str, dict[str, Any]] = {}
    for node_id, iteration, fields in document["outputs"]:
        outputs.setdefault(node_id, {})[str(iteration)] = fields
    document["outputs"] = outputs
    return document


def load_frames(connection: Connection, run_id: str) -> list[FrameBody]:
    """Load the last full structure of a run and the deltas since."""
    return rows(connection, FrameBody, "select * from smithers_p1.load_frames(%s)", run_id)


def register_outputs(connection: Connection, shapes: Sequence[Json]) -> None:
    """Make the tables of output shapes [{name, shape, fields}]; a repeat does nothing."""
    perform(connection, "select smithers_p1.register_outputs(%s::jsonb)", codec.encode(shapes))


def commit_frame(connection: Connection, frame: Json, *, notify: bool = True) -> CommittedFrame:
    """Commit one frame with its run token (owner, epoch, claim_id). Raises Fenced."""
    return CommittedFrame(
        **scalar(
            connection,
            "select smithers_p1.commit_frame(%s::jsonb, %s)",
            codec.encode(frame),
            notify,
        )
    )


def fail_run(connection: Connection, token: Json, error: Json) -> None:
    """Fail a run at once; its attempts in flight are fenced. Raises Fenced."""
    perform(
        connection,
        "select smithers_p1.fail_run(%s::jsonb)",
        codec.encode({**token, "error": error}),
    )


def settle_request(connection: Connection, token: Json) -> str:
    """Pause or cancel a run that asked for it if nothing is in flight; give its status."""
    answer = scalar(connection, "select smithers_p1.settle_request(%s::jsonb)", codec.encode(token))
    return str(answer["status"])


def give_up_runs(connection: Connection, owner: int, run_ids: Sequence[str]) -> int:
    """Hand runs back; give how many were still ours."""
    return int(scalar(connection, "select smithers_p1.give_up_runs(%s, %s)", owner, list(run_ids)))


def fire_due(connection: Connection, *, limit: int = 100, late: timedelta = timedelta(0)) -> int:
    """Fire timers, expiries, retries and resets that are `late` at least; give how many."""
    return int(scalar(connection, "select smithers_p1.fire_due(%s, %s)", limit, late))


def next_due(connection: Connection) -> float | None:
    """Give the seconds until the earliest due row, negative when late, None without one."""
    due = scalar(connection, "select smithers_p1.next_due()")
    return None if due is None else float(due)
