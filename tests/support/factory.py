"""Rows in any state, made through the stored functions: no workflow file, no other process."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from smithers.process.identity import host_name
from smithers.sql import operator, processes, scheduler, worker
from smithers.sql.calls import Connection
from smithers.sql.rows import ClaimedTask, TakenRun

LEASE = timedelta(seconds=30)
DESCRIPTOR = {"kind": "compute", "retries": 3, "queue": "default"}
DESCRIPTOR_HASH = hashlib.sha256(b"descriptor").hexdigest()


def register(connection: Connection, kind: str, *, lease: timedelta = LEASE, pid: int = 1) -> int:
    """A process row; a negative lease makes one that is dead already."""
    return processes.register_process(
        connection, kind=kind, host=host_name(), pid=pid, uuid=uuid4(), lease=lease
    )


def make_run(connection: Connection, run_id: str, **more: object) -> str:
    """A run that nobody has rendered."""
    operator.create_run(
        connection,
        {
            "run_id": run_id,
            "workflow": "flow",
            "path": "/nowhere/flow.py",
            "source_hash": "0" * 64,
            "input": {},
            "config": {},
            "request_id": run_id,
            **more,
        },
    )
    return run_id


def take(connection: Connection, owner: int, run_id: str) -> TakenRun:
    """Take dirty runs for a scheduler until this one is among them."""
    taken = scheduler.take_runs(connection, owner, uuid4(), limit=1000, resume_limit=1000)
    return next(run for run in taken if run.run_id == run_id)


def token(run: TakenRun, owner: int) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "owner": owner,
        "epoch": run.epoch,
        "claim_id": str(run.claim_id),
    }


def frame(connection: Connection, run: TakenRun, owner: int, **parts: object) -> dict[str, Any]:
    """The document of a frame of a run as it is stored now; `parts` replace what is empty."""
    loaded = scheduler.load_run(connection, run.run_id)
    empty: dict[str, Any] = {
        name: []
        for name in (
            "descriptors", "outputs", "mount", "moves", "ready", "statics",
            "approvals", "human", "timers", "consume", "blocked",
        )
    }  # fmt: skip
    return {
        **empty,
        "structure": {"base": None, "body": None},
        "trigger": "facts",
        "status": "running",
        "error": None,
        "wanted_seq": loaded["run"]["wanted_seq"],
        **token(run, owner),
        **parts,
    }


def make_ready(
    connection: Connection, owner: int, run_id: str, node_ids: Sequence[str]
) -> TakenRun:
    """A run that this scheduler owns, whose tasks can be claimed."""
    run = take(connection, owner, run_id)
    key = [{"node_id": node_id, "iteration": 0} for node_id in node_ids]
    scheduler.commit_frame(
        connection,
        frame(
            connection,
            run,
            owner,
            descriptors=[{"hash": DESCRIPTOR_HASH, "body": DESCRIPTOR}],
            mount=[
                {**k, "kind": "compute", "upstream": [], "descriptor_hash": DESCRIPTOR_HASH}
                for k in key
            ],
            ready=[
                {
                    **k,
                    "queue": "default",
                    "priority": 0,
                    "descriptor_hash": DESCRIPTOR_HASH,
                    "alone": False,
                }
                for k in key
            ],
        ),
    )
    return run


def claim(
    connection: Connection,
    owner: int,
    *,
    limit: int = 100,
    claim_id: UUID | None = None,
    lease: timedelta = LEASE,
) -> list[ClaimedTask]:
    """Claim ready tasks; a negative lease makes leases that have expired already."""
    return worker.claim_tasks(
        connection,
        owner,
        claim_id or uuid4(),
        queues=["default"],
        limit=limit,
        free=limit,
        lease=lease,
    )
