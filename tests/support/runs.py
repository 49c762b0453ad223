"""Runs for fleet tests: started, decided and judged without going through a command."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from smithers.bundle.build import build
from smithers.bundle.store import store
from smithers.sql import codec, operator
from smithers.sql.calls import Connection
from smithers.sql.errors import Refused

WORKFLOWS = Path(__file__).parent / "workflows"
ENDED = ("finished", "failed", "cancelled")


def connect(dsn: str) -> Connection:
    """An autocommit connection that reads values as the engine does."""
    connection = psycopg.connect(dsn, autocommit=True)
    codec.install(connection)
    return connection


def start_run(
    connection: Connection,
    name: str,
    run_input: dict[str, Any],
    *,
    run_id: str | None = None,
    workflow: str | None = None,
    config: dict[str, Any] | None = None,
    folder: Path = WORKFLOWS,
) -> str:
    """Store the bundle of a test workflow and create a run of it; nothing is admitted first."""
    entry = folder / f"{name}.py"
    bundle = build(entry)
    store(connection, bundle)
    chosen = run_id or f"t{uuid4().hex[:12]}"
    operator.create_run(
        connection,
        {
            "run_id": chosen,
            "workflow": workflow or name.replace("_", "-"),
            "path": str(entry),
            "source_hash": bundle.source_hash,
            "input": run_input,
            "config": config or {},
            "request_id": chosen,
        },
    )
    return chosen


def statuses(connection: Connection) -> Counter[str]:
    """How many runs there are in each status."""
    return Counter(
        dict(
            connection.execute(
                "select status, count(*) from smithers.run_state group by status"
            ).fetchall()
        )
    )


def status(connection: Connection, run_id: str) -> str:
    row = connection.execute(
        "select status from smithers.run_state where run_id = %s", [run_id]
    ).fetchone()
    assert row is not None
    return str(row[0])


def node(connection: Connection, run_id: str, node_id: str, iteration: int = 0) -> dict[str, Any]:
    """One row of node_view."""
    row = connection.execute(
        "select to_jsonb(v) from smithers.node_view v"
        " where run_id = %s and node_id = %s and iteration = %s",
        [run_id, node_id, iteration],
    ).fetchone()
    return {} if row is None else dict(row[0])


def attempts(connection: Connection, run_id: str) -> list[tuple[str, int, str]]:
    """(node, attempt, state) of a run's attempts."""
    found = connection.execute(
        "select node_id, attempt, state from smithers.attempts where run_id = %s order by 1, 2",
        [run_id],
    )
    return [(str(name), int(number), str(state)) for name, number, state in found.fetchall()]


def count_events(connection: Connection, run_id: str, kind: str) -> int:
    """How many events of a type a run has."""
    row = connection.execute(
        "select count(*) from smithers.events where run_id = %s and type = %s", [run_id, kind]
    ).fetchone()
    assert row is not None
    return int(row[0])


def approve_open(connection: Connection, acknowledged: list[str] | None = None) -> int:
    """Approve whatever is open; give how many decisions were taken.

    The run of each decision whose reply came is put into `acknowledged`.
    """
    taken = 0
    for run_id, node_id, iteration in connection.execute(
        "select run_id, node_id, iteration from smithers.approvals"
        " where decided_seq is null and not superseded"
    ).fetchall():
        decision = {
            "run_id": run_id,
            "node_id": node_id,
            "iteration": iteration,
            "decision": "approved",
            "by": "test",
            "request_id": uuid4().hex,
        }
        # Somebody else may have decided, or the run may have ended, since we looked.
        with suppress(Refused):
            operator.decide_approval(connection, decision)
            taken += 1
            if acknowledged is not None:
                acknowledged.append(run_id)
    return taken


def signal(connection: Connection, run_id: str, name: str, payload: object = None) -> None:
    operator.send_signal(
        connection,
        {"run_id": run_id, "name": name, "payload": payload, "request_id": uuid4().hex},
    )


def bodies_started_after_completion(connection: Connection, log: Path) -> list[str]:
    """Lines of the outside log that say that a completed task's body started again.

    The log and the database share this machine's clock; a body that starts later than the
    commit of its key's success is what must never happen.
    """
    finished = {
        (run_id, node_id, iteration): at.timestamp()
        for run_id, node_id, iteration, at in connection.execute(
            "select run_id, node_id, iteration, at from smithers.events"
            " where type = 'attempt-finished'"
        ).fetchall()
    }
    wrong = []
    for line in log.read_text().splitlines():
        mark, run_id, key, at = line.split(" ")
        name, _, iteration = key.rpartition("/")
        done = finished.get((run_id, name, int(iteration)))
        if mark == "S" and done is not None and float(at) > done:
            wrong.append(f"{line} (finished at {done})")
    return wrong
