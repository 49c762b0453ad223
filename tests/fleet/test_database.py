"""The database crashes under load, again and again: nothing acknowledged is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from smithers.sql.embedded import Options, Place, ensure_running
from smithers.sql.schema import migrate
from support.fleet import fleet
from support.postgres import TestServer, create_database, throwaway_cluster
from support.runs import (
    approve_open,
    bodies_started_after_completion,
    connect,
    start_run,
    statuses,
)
from support.runs import signal as send_signal
from support.waiting import until

T = TypeVar("T")
ROLES = ["scheduler", "scheduler", "worker", "worker", "worker", "supervisor"]
RUNS = 12
CRASHES = 5


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_immediate_stops_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    log = tmp_path / "bodies.log"
    log.touch()
    options = Options(durable=True, max_connections=100, die_with_parent=True)
    with throwaway_cluster(fsync="on", synchronous_commit="on") as home:
        server = TestServer(Place(home).dsn("postgres"), "throwaway")
        create_database(server, "crashes", None)
        dsn = server.url("crashes")
        with connect(dsn) as connection:
            migrate(connection)
        acknowledged: list[str] = []

        def begin(run_id: str) -> None:
            with connect(dsn) as connection:
                # The id is its request id too: a repeat after a lost reply finds the same run.
                shape = {"log": str(log), "seconds": 0.3, "width": 8}
                start_run(connection, "mixed", shape, run_id=run_id)
                acknowledged.append(run_id)
                send_signal(connection, run_id, "go", {"payload": run_id})

        with fleet(dsn, tmp_path, ROLES, lease=3.0) as whole:
            for number in range(RUNS):
                insist(partial(begin, f"run-{number}"))
                if number % (RUNS // CRASHES) == 0:
                    crash(home)
                    ensure_running(home, options)

            approved: list[str] = []
            approved_at_crash = 0

            def look() -> bool:
                with connect(dsn) as connection:
                    approve_open(connection, approved)
                    return statuses(connection) == {"finished": RUNS}

            def finished() -> bool:
                nonlocal approved_at_crash
                if len(approved) >= approved_at_crash + RUNS // 3:
                    # Right after a decision was acknowledged.
                    approved_at_crash = len(approved)
                    crash(home)
                    ensure_running(home, options)
                return insist(look)

            try:
                until(finished, seconds=180, pause=0.1)
            except AssertionError as late:
                with connect(dsn) as connection:
                    raise AssertionError(f"{statuses(connection)}\n{whole.logs()}") from late
            assert approved_at_crash > 0
            assert len(whole.living()) == len(ROLES), whole.logs()
            with connect(dsn) as connection:
                there = {row[0] for row in connection.execute("select run_id from smithers.runs")}
                assert set(acknowledged) <= there
                decided = connection.execute(
                    "select run_id from smithers.approvals where decided_seq is not null"
                ).fetchall()
                assert {row[0] for row in decided} == there
                assert len(approved) == len(set(approved)), "a decision was taken twice"
                assert bodies_started_after_completion(connection, log) == []
            verified = whole.cli("verify")
            assert verified.returncode == 0, verified.stdout + verified.stderr


def crash(home: Path) -> None:
    """SIGQUIT the postmaster: what `pg_ctl stop -m immediate` does."""
    pid = int(Place(home).pid_file.read_text().splitlines()[0])
    os.kill(pid, signal.SIGQUIT)

    def gone() -> bool:
        with suppress(FileNotFoundError):
            return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[
                0
            ] == "Z"
        return True

    until(gone, seconds=20)


def insist(do: Callable[[], T]) -> T:
    """Do it again until the database lets it through."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return do()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
