"""Supervisor processes on a real database and a real host."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from typing import LiteralString
from uuid import uuid4

import pytest

from smithers.process.environment import claim_mark, executor_mark
from smithers.sql.calls import Connection
from smithers.sql.processes import instance_id
from support import factory
from support.fleet import Fleet
from support.runs import connect
from support.waiting import until

pytestmark = pytest.mark.slow
EXPIRED = timedelta(seconds=-1)


@pytest.fixture
def conn(database: str) -> Generator[Connection, None, None]:
    with connect(database) as connection:
        yield connection


@pytest.fixture
def fleet(database: str, tmp_path: Path) -> Generator[Fleet, None, None]:
    fleet = Fleet(database, tmp_path, lease=1.0)
    yield fleet
    fleet.stop()


def lose_attempts(conn: Connection, run_id: str, count: int) -> None:
    scheduler = factory.register(conn, "scheduler", lease=timedelta(hours=1))
    factory.make_run(conn, run_id)
    factory.make_ready(conn, scheduler, run_id, [f"t{n}" for n in range(count)])
    factory.claim(conn, factory.register(conn, "worker"), limit=count, lease=EXPIRED)


def count(conn: Connection, query: LiteralString, *params: object) -> int:
    row = conn.execute(query, params).fetchone()
    assert row is not None
    return int(row[0])


def abandoned(conn: Connection) -> int:
    return count(conn, "select count(*) from smithers.attempts where state = 'abandoned'")


def test_three_supervisors_repair_each_thing_once(fleet: Fleet, conn: Connection) -> None:
    lose_attempts(conn, "r1", 50)
    dead = factory.register(conn, "scheduler", lease=EXPIRED)
    factory.make_run(conn, "r2")
    factory.take(conn, dead, "r2")
    members = [fleet.start("supervisor", "--name", f"s{n}") for n in range(3)]
    until(lambda: abandoned(conn) == 50)
    until(
        lambda: count(conn, "select count(*) from smithers.run_state where owner = %s", dead) == 0
    )
    until(
        lambda: count(conn, "select count(stopped_at) from smithers.processes where id = %s", dead)
    )
    for member in members:
        member.send(signal.SIGTERM)
    assert [member.process.wait(20) for member in members] == [0, 0, 0]
    assert count(conn, "select count(*) from smithers.events where type = 'run-reclaimed'") == 1
    ends = "select count(*) from smithers.events where type = 'attempt-abandoned'"
    assert count(conn, ends) == 50
    lines = [json.loads(line) for m in members for line in m.log.read_text().splitlines()]
    told = [line["what"] for line in lines if line.get("duty") == "attempt"]
    assert len(told) == len(set(told)) == 50
    assert not [line for line in lines if line["level"] == "error"]
    assert {line["name"] for line in lines} == {"s0", "s1", "s2"}


def test_a_named_run_is_looked_after_alone(fleet: Fleet, conn: Connection) -> None:
    lose_attempts(conn, "r1", 1)
    lose_attempts(conn, "r2", 2)
    member = subprocess.Popen(
        [sys.executable, "-m", "smithers.cli.main", "supervise", "r2", "--interval", "0.2"],
        env=fleet.environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: abandoned(conn) == 2)
        assert count(conn, "select count(*) from smithers.leases where run_id = 'r1'") == 1
    finally:
        member.terminate()
        assert member.wait(20) == 0


def test_a_dry_run_is_printed(fleet: Fleet, conn: Connection) -> None:
    assert "nothing to repair" in fleet.cli("supervise", "--dry-run").stdout
    lose_attempts(conn, "r1", 2)
    done = fleet.cli("supervise", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    found = [item for item in json.loads(done.stdout) if item["duty"] == "attempt"]
    assert [item["node_id"] for item in found] == ["t0", "t1"]
    assert "would repair attempt: r1 t0/0 attempt 1" in fleet.cli("supervise", "--dry-run").stdout
    assert abandoned(conn) == 0
    assert fleet.cli("supervise", "--all", "r1").returncode == 4


def test_orphans_of_this_host_are_killed_and_nobody_else(fleet: Fleet, conn: Connection) -> None:
    database = instance_id(conn)
    living = factory.register(conn, "worker", lease=timedelta(hours=1))
    dead = factory.register(conn, "worker", lease=EXPIRED)
    factory.make_run(conn, "r1")
    scheduler = factory.register(conn, "scheduler", lease=timedelta(hours=1))
    factory.make_ready(conn, scheduler, "r1", ["t0"])
    (task,) = factory.claim(conn, living, lease=timedelta(hours=1))
    key = {"run_id": "r1", "node_id": "t0", "iteration": 0, "attempt": 1}
    marks = {
        "dead executor": executor_mark(database, dead, uuid4()),
        "living executor": executor_mark(database, living, uuid4()),
        "ended claim": claim_mark(database, uuid4(), **key),  # type: ignore[arg-type]
        "current claim": claim_mark(database, task.claim_id, **key),  # type: ignore[arg-type]
        "another database": executor_mark("1-1", dead, uuid4()),
    }
    processes = {
        name: subprocess.Popen(
            ["sleep", "600"], env={**os.environ, mark.name: mark.value}, start_new_session=True
        )
        for name, mark in marks.items()
    }
    try:
        fleet.start("supervisor")
        for name in ("dead executor", "ended claim"):
            assert processes[name].wait(30) == -signal.SIGKILL
        alive = {name for name, process in processes.items() if process.poll() is None}
        assert alive == {"living executor", "current claim", "another database"}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def test_it_survives_the_loss_of_every_connection(fleet: Fleet, conn: Connection) -> None:
    member = fleet.start("supervisor")
    until(lambda: count(conn, "select count(*) from smithers.processes"))
    for _ in range(3):
        conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    lose_attempts(conn, "r1", 3)
    until(lambda: abandoned(conn) == 3)
    assert member.alive()
    # It may have been silent for its lease, and then it has begun anew.
    assert count(conn, "select count(*) from smithers.processes where kind = 'supervisor'") <= 2


def test_metrics_and_health_are_served(fleet: Fleet, conn: Connection) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lose_attempts(conn, "r1", 4)
    fleet.start("supervisor", "--metrics-port", str(port))

    def get(path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    until(lambda: 'smithers_reclaims_total{what="attempt"} 4.0' in get("/metrics"))
    assert 'smithers_runs{status="running"} 1.0' in get("/metrics")
    assert json.loads(get("/healthz"))["ok"] is True
