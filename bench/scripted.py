"""A scripted scheduler and worker that drive the stored functions without user code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from smithers.sql import operator, processes, scheduler, worker
from smithers.sql.calls import Connection
from smithers.sql.rows import ClaimedTask

LEASE = timedelta(seconds=30)
SHAPE = "ab" * 32
HASH = "cd" * 32
DESCRIPTOR = {
    "hash": HASH,
    "body": {"kind": "compute", "run": "m:f", "args": {"n": 1}, "needs": [], "retries": 3},
}
OUTPUT = {"note": "twenty bytes of text"}
EMPTY = (
    "descriptors",
    "mount",
    "moves",
    "ready",
    "statics",
    "approvals",
    "human",
    "timers",
    "consume",
)


@dataclass
class Script:
    """One run and the two processes that serve it; `statements` counts round trips."""

    connection: Connection
    run_id: str = field(default_factory=lambda: f"b{uuid4().hex[:12]}")
    statements: int = 0
    token: dict[str, Any] = field(default_factory=dict)
    wanted: int = 1
    scheduler_id: int = 0
    worker_id: int = 0

    def begin(self) -> None:
        """Register both processes, create the run, take it."""
        self.scheduler_id = self._register("scheduler")
        self.worker_id = self._register("worker")
        run = {
            "run_id": self.run_id,
            "workflow": "w",
            "path": "w.py",
            "source_hash": "0" * 64,
            "input": {},
        }
        operator.create_run(self.connection, run)
        shape = {
            "name": "note",
            "shape": SHAPE,
            "fields": [{"name": "note", "type": "str", "nullable": False}],
        }
        scheduler.register_outputs(self.connection, [shape])
        taken = scheduler.take_runs(
            self.connection, self.scheduler_id, uuid4(), limit=100, resume_limit=3
        )
        mine = next(each for each in taken if each.run_id == self.run_id)
        self.token = {
            "run_id": self.run_id,
            "owner": self.scheduler_id,
            "epoch": mine.epoch,
            "claim_id": str(mine.claim_id),
        }

    def _register(self, kind: str) -> int:
        return processes.register_process(
            self.connection, kind=kind, host="bench", pid=1, uuid=uuid4(), lease=LEASE
        )

    def load(self) -> None:
        """Load the run, as a render would."""
        document = scheduler.load_run(self.connection, self.run_id)
        self.wanted = document["run"]["wanted_seq"]
        self.statements += 1

    def frame(
        self, names: Sequence[str], *, body: dict[str, Any] | None = None, status: str = "running"
    ) -> None:
        """Mount tasks and make them ready in one frame."""
        keys = [{"node_id": name, "iteration": 0} for name in names]
        document: dict[str, Any] = {name: [] for name in EMPTY} | {
            "wanted_seq": self.wanted,
            "trigger": "facts",
            "structure": {"base": None, "body": body},
            "descriptors": [DESCRIPTOR] if names else [],
            "mount": [
                key | {"kind": "compute", "upstream": [], "descriptor_hash": HASH} for key in keys
            ],
            "ready": [key | {"queue": "default", "priority": 0} for key in keys],
            "status": status,
            "error": None,
        }
        scheduler.commit_frame(self.connection, document | self.token)
        self.statements += 1

    def claim(self, limit: int) -> list[ClaimedTask]:
        """Claim up to `limit` tasks."""
        self.statements += 1
        return worker.claim_tasks(
            self.connection,
            self.worker_id,
            uuid4(),
            queues=["default"],
            limit=limit,
            free=limit,
            lease=LEASE,
        )

    def complete(self, tasks: Sequence[ClaimedTask]) -> None:
        """Finish tasks in one call."""
        items = [
            item(task) | {"name": "note", "shape": SHAPE, "output": OUTPUT, "seconds": 0.01}
            for task in tasks
        ]
        assert all(worker.complete_attempts(self.connection, items))
        self.statements += 1

    def beat(self, tasks: Sequence[ClaimedTask]) -> None:
        """Beat for tasks in flight."""
        assert (
            worker.heartbeat(self.connection, self.worker_id, [item(task) for task in tasks], LEASE)
            == []
        )


def item(task: ClaimedTask) -> dict[str, Any]:
    """The key and token of a claimed task."""
    return {
        "run_id": task.run_id,
        "node_id": task.node_id,
        "iteration": task.iteration,
        "attempt": task.attempt,
        "claim_id": str(task.claim_id),
    }
