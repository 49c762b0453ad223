"""Speeds of a real fleet (one scheduler, two workers), beside a floor of the same run."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from bench.scripted import OUTPUT
from smithers.bundle.build import build
from smithers.bundle.store import store
from smithers.sql import codec, operator
from smithers.sql.calls import Connection
from smithers.sql.embedded import Place
from smithers.sql.schema import migrate
from support.fleet import fleet
from support.postgres import TestServer as Server
from support.postgres import database_on, throwaway_cluster
from support.runs import connect, status
from support.waiting import until

NOOP = Path(__file__).parent / "workflows" / "noop.py"
WIDTH = 2000
STEPS = 200
PICK_UPS = 40


def measure() -> dict[str, str]:
    """Measure on a durable cluster; figures are rates and milliseconds with their ratios."""
    with (
        throwaway_cluster(fsync="on", synchronous_commit="on") as home,
        database_on(Server(Place(home).dsn("postgres"), "throwaway"), None) as name,
        tempfile.TemporaryDirectory() as folder,
        connect(Server(Place(home).dsn("postgres"), "throwaway").url(name)) as connection,
    ):
        migrate(connection)
        dsn = Server(Place(home).dsn("postgres"), "throwaway").url(name)
        commit = commit_floor(connection)
        with fleet(dsn, Path(folder), ["scheduler", "worker", "worker"], lease=30) as whole:
            run(connection, "wide", width=50)  # warm executors and renderers
            rate = WIDTH / run(connection, "wide", width=WIDTH)
            step = run(connection, "deep", passes=STEPS) / STEPS * 1000
            picks = sorted(pick_up(connection) for _ in range(PICK_UPS))
            assert len(whole.living()) == 3, whole.logs()
    return {
        "one commit, psycopg": f"{commit:10.2f} ms",
        "tasks per second, 2,000 side by side": f"{rate:10.0f}",
        "sequential step": f"{step:10.2f} ms, {step / commit:.1f} times one commit",
        "pick-up, idle, p50": f"{statistics.median(picks):10.2f} ms",
        "pick-up, idle, p95": f"{picks[int(0.95 * PICK_UPS)]:10.2f} ms",
    }


def commit_floor(connection: Connection) -> float:
    """Milliseconds of one insert and its commit, the median of 300."""
    connection.execute("create table floor (id int generated always as identity, body jsonb)")
    body = codec.encode(OUTPUT)
    times = []
    for _ in range(300):
        began = time.perf_counter()
        connection.execute("insert into floor (body) values (%s::jsonb)", [body])
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def run(connection: Connection, workflow: str, **shape: int) -> float:
    """Seconds from the creation of a run to its end."""
    run_id = start(connection, workflow, shape)
    until(lambda: status(connection, run_id) in ("finished", "failed"), seconds=120, pause=0.005)
    assert status(connection, run_id) == "finished"
    row = connection.execute(
        "select extract(epoch from s.ended_at - r.created_at)::float8"
        " from smithers.run_state s join smithers.runs r using (run_id) where run_id = %s",
        [run_id],
    ).fetchone()
    assert row is not None
    return float(row[0])


def pick_up(connection: Connection) -> float:
    """Milliseconds from the commit that makes a task ready to the first line of its body."""
    run_id = start(connection, "wide", {"width": 1})
    until(lambda: status(connection, run_id) == "finished", seconds=20, pause=0.02)
    row = connection.execute(
        "select o.at - extract(epoch from e.at)::float8 from smithers.outputs_began o"
        " join smithers.events e on e.run_id = o.run_id and e.type = 'node-ready'"
        " where o.run_id = %s",
        [run_id],
    ).fetchone()
    assert row is not None
    return float(row[0]) * 1000


def start(connection: Connection, workflow: str, shape: dict[str, int]) -> str:
    bundle = build(NOOP)
    store(connection, bundle)
    run_id = f"b{uuid4().hex[:12]}"
    operator.create_run(
        connection,
        {
            "run_id": run_id,
            "workflow": workflow,
            "path": str(NOOP),
            "source_hash": bundle.source_hash,
            "input": {"width": 0, "passes": 0} | shape,
            "request_id": run_id,
        },
    )
    return run_id
