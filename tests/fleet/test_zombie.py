"""A worker that stands still for longer than its lease and comes back as a zombie."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from smithers.operations.verifying import verify
from smithers.sql import worker
from smithers.sql.calls import Connection
from support.fleet import dead, fleet, held_pids
from support.runs import (
    attempts,
    bodies_started_after_completion,
    connect,
    node,
    start_run,
    status,
)
from support.waiting import until

REFUSED = ("attempt-fenced", "attempt-ended", "process-expired")
LEASE = 2.0


@pytest.mark.slow
def test_a_late_writer_is_refused_and_its_bodies_die(database: str, tmp_path: Path) -> None:
    with (
        connect(database) as connection,
        fleet(database, tmp_path, ["scheduler", "supervisor"], lease=LEASE) as whole,
    ):
        zombie = whole.start("worker")
        run_id = start_run(connection, "held", {"folder": str(tmp_path), "width": 2})
        first = held_pids(tmp_path, bodies=2)
        tokens = {
            name: str(claim)
            for name, claim in connection.execute(
                "select node_id, claim_id from smithers.leases where run_id = %s", [run_id]
            ).fetchall()
        }
        zombie.send(signal.SIGSTOP)
        # One of its bodies returns meanwhile, so that there is something to write late.
        early = next(pid for name, pid, _ in first if name == "hold:0")
        (tmp_path / f"go-{early}").touch()
        frozen = connection.execute("select smithers.now()").fetchone()
        assert frozen is not None
        whole.start("worker")
        for _, pid, _ in held_pids(tmp_path, bodies=4)[2:]:
            (tmp_path / f"go-{pid}").touch()
        until(lambda: status(connection, run_id) == "finished", seconds=30)
        two_leases = "select smithers.now() - %s > %s * interval '2 seconds'"
        until(lambda: connection.execute(two_leases, [frozen[0], LEASE]).fetchone() == (True,))
        before = everything(connection, run_id)
        zombie.send(signal.SIGCONT)
        until(lambda: dead(pid for _, *both in first for pid in both), seconds=5)
        until(lambda: any(word in zombie.log.read_text() for word in REFUSED), seconds=5)
        # What it would write is refused by the token, too, whoever sends it.
        row = connection.execute(
            "select name, shape from smithers.output_tables limit 1"
        ).fetchone()
        assert row is not None
        late = [
            {
                "run_id": run_id,
                "node_id": name,
                "iteration": 0,
                "attempt": 1,
                "claim_id": claim,
                "name": row[0],
                "shape": row[1],
                "output": {"pid": 1},
            }
            for name, claim in tokens.items()
        ]
        assert worker.complete_attempts(connection, late) == [False, False]
        assert everything(connection, run_id) == before
        assert [each for each in attempts(connection, run_id) if each[0] != "last"] == [
            ("hold:0", 1, "abandoned"),
            ("hold:0", 2, "finished"),
            ("hold:1", 1, "abandoned"),
            ("hold:1", 2, "finished"),
        ]
        for name, attempt, claim in kept(connection, run_id):
            assert node(connection, run_id, name)["state"] == "finished"
            assert attempt == (1 if name == "last" else 2)
            assert claim != tokens.get(name)
        assert bodies_started_after_completion(connection, tmp_path / "log") == []
        # It is a worker like any other again.
        for member in whole.living("worker"):
            if member is not zombie:
                member.kill()
        (tmp_path / "go").touch()
        after = start_run(connection, "held", {"folder": str(tmp_path)})
        until(lambda: status(connection, after) == "finished", seconds=30)
        assert verify(connection) == []


def kept(connection: Connection, run_id: str) -> list[tuple[str, int, str]]:
    """(node, attempt, token) of the outputs of a run."""
    found = connection.execute(
        "select node_id, attempt, claim_id from smithers.outputs_held where run_id = %s order by 1",
        [run_id],
    )
    return [(str(name), int(attempt), str(claim)) for name, attempt, claim in found.fetchall()]


def everything(connection: Connection, run_id: str) -> list[object]:
    """What a late writer might have changed."""
    events = connection.execute(
        "select seq, type, node_id, attempt, payload from smithers.events"
        " where run_id = %s order by seq",
        [run_id],
    ).fetchall()
    nodes = connection.execute(
        "select to_jsonb(n) from smithers.nodes n where run_id = %s order by node_id", [run_id]
    ).fetchall()
    return [events, nodes, attempts(connection, run_id), kept(connection, run_id)]
