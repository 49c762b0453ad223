"""Worker processes on a real database; the test itself plays scheduler and supervisor."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from smithers.bundle.store import store
from smithers.sql import codec, scheduler, supervisor
from smithers.sql.calls import Connection
from support import factory
from support.attempts import bundle, descriptor
from support.fleet import Fleet, Member
from support.runs import connect

SHAPE = {
    "name": "out",
    "shape": "0" * 64,
    "fields": [
        {"name": "text", "type": "str", "nullable": False},
        {"name": "number", "type": "float", "nullable": False},
        {"name": "whole", "type": "int", "nullable": False},
    ],
}


@dataclass
class WorkerBench:
    """One database, its workers, and one scheduler row that owns all runs."""

    dsn: str
    folder: Path
    lease: float = 2.0
    fleet: Fleet = field(init=False)
    conn: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.conn = connect(self.dsn)
        self.fleet = Fleet(self.dsn, self.folder, lease=self.lease)
        self.owner = factory.register(self.conn, "scheduler", lease=timedelta(hours=1))
        self.source = bundle()
        store(self.conn, self.source)
        scheduler.register_outputs(self.conn, [SHAPE])

    def close(self) -> None:
        self.fleet.stop()
        self.conn.close()

    def start(self, *words: str, dsn: str | None = None) -> Member:
        """A worker process."""
        self.fleet.dsn = dsn or self.dsn
        return self.fleet.start("worker", *words)

    def ready(self, run_id: str, function: str, /, *, count: int = 1, **more: Any) -> None:
        """A run with `count` tasks n0, n1, … that can be claimed."""
        queue = more.pop("queue", "default")
        factory.make_run(self.conn, run_id, source_hash=self.source.source_hash)
        run = factory.take(self.conn, self.owner, run_id)
        body = descriptor(function, **more)
        digest = hashlib.sha256(codec.encode(body).encode()).hexdigest()
        nodes = [{"node_id": f"n{number}", "iteration": 0} for number in range(count)]
        scheduler.commit_frame(
            self.conn,
            factory.frame(
                self.conn,
                run,
                self.owner,
                descriptors=[{"hash": digest, "body": body}],
                mount=[
                    {**n, "kind": "compute", "upstream": [], "descriptor_hash": digest}
                    for n in nodes
                ],
                ready=[
                    {**n, "queue": queue, "priority": 0, "descriptor_hash": digest, "alone": False}
                    for n in nodes
                ],
            ),
        )

    def attempts(self, run_id: str) -> list[tuple[str, int, str]]:
        """(node, attempt, state) of a run's attempts."""
        found = self.conn.execute(
            "select node_id, attempt, state from smithers.attempts where run_id = %s order by 1, 2",
            [run_id],
        )
        return [(str(n), int(a), str(s)) for n, a, s in found.fetchall()]

    def states(self, run_id: str) -> set[str]:
        """The states of a run's nodes."""
        found = self.conn.execute("select state from smithers.nodes where run_id = %s", [run_id])
        return {str(row[0]) for row in found.fetchall()}

    def error(self, run_id: str) -> dict[str, Any]:
        """The error of a run's first node."""
        found = self.conn.execute(
            "select error from smithers.nodes where run_id = %s and error is not null", [run_id]
        ).fetchone()
        return {} if found is None else dict(found[0])

    def leases(self) -> int:
        """How many attempts are held by anybody."""
        found = self.conn.execute("select count(*) from smithers.leases").fetchone()
        assert found is not None
        return int(found[0])

    def outputs(self, run_id: str) -> int:
        """How many outputs a run has."""
        found = self.conn.execute(
            "select count(*) from smithers.outputs_out where run_id = %s", [run_id]
        ).fetchone()
        assert found is not None
        return int(found[0])

    def reclaim(self) -> int:
        """Do what a supervisor does with expired leases; give how many."""
        stale = supervisor.stale_leases(self.conn)
        items = [
            {
                "run_id": lease.run_id,
                "node_id": lease.node_id,
                "iteration": lease.iteration,
                "attempt": lease.attempt,
                "claim_id": str(lease.claim_id),
            }
            for lease in stale
        ]
        return sum(supervisor.reclaim_attempts(self.conn, items, poison=50)) if items else 0

    def log(self, member: Member) -> str:
        """What a worker has logged so far."""
        return member.log.read_text()


def alive(pid: int) -> bool:
    from smithers.process.procfs import process

    proc = process(pid)
    return proc is not None and not proc.dead and pid != os.getpid()
