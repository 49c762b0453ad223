"""The database is away for three leases: bodies stand still meanwhile, and none is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from smithers.operations.verifying import verify
from smithers.sql.embedded import Options, Place, ensure_running, stop_server
from smithers.sql.schema import migrate
from support.fleet import dead, fleet, held_pids, state_of
from support.postgres import TestServer, create_database, throwaway_cluster
from support.runs import attempts, connect, start_run, status
from support.waiting import until

LEASE = 2.0
ROLES = ["scheduler", "worker", "worker", "supervisor", "supervisor"]


@contextmanager
def stopped(home: Path) -> Generator[None]:
    """The server is shut down: connections are refused."""
    stop_server(home)
    yield
    ensure_running(home, Options(durable=True, max_connections=100, die_with_parent=True))


@contextmanager
def silent(home: Path) -> Generator[None]:
    """The server and all its children stand still: nothing is refused, nothing is answered."""
    server = int(Place(home).pid_file.read_text().splitlines()[0])
    os.kill(server, signal.SIGSTOP)
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGSTOP)
    try:
        yield
    finally:
        for child in children:
            os.kill(int(child), signal.SIGCONT)
        os.kill(server, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("away", [stopped, silent])
def test_attempts_in_flight_outlive_three_leases_of_outage(
    away: Callable[[Path], AbstractContextManager[None]], tmp_path: Path
) -> None:
    with throwaway_cluster(fsync="on", synchronous_commit="on") as home:
        server = TestServer(Place(home).dsn("postgres"), "throwaway")
        create_database(server, "outage", None)
        dsn = server.url("outage")
        with connect(dsn) as connection:
            migrate(connection)
            run_id = start_run(connection, "held", {"folder": str(tmp_path), "width": 3})
        with fleet(dsn, tmp_path, ROLES, lease=LEASE) as whole:
            family = [pid for _, *both in held_pids(tmp_path, bodies=3) for pid in both]
            with away(home):
                gone_at = time.monotonic()
                until(lambda: all(state_of(pid) == "T" for pid in family), seconds=LEASE * 2)
                (tmp_path / "go").touch()
                # The outage itself is what is tested: three leases of it.
                until(lambda: time.monotonic() - gone_at > 3 * LEASE, seconds=60)
                assert all(state_of(pid) == "T" for pid in family), "they stand still"
            until(lambda: state(dsn, run_id) == "finished", seconds=30)
            assert len(whole.living()) == len(ROLES), whole.logs()
            with connect(dsn) as connection:
                held = [(f"hold:{number}", 1, "finished") for number in range(3)]
                assert attempts(connection, run_id) == [*held, ("last", 1, "finished")]
                assert verify(connection) == []
            lines = [line.split(" ")[::2] for line in (tmp_path / "log").read_text().splitlines()]
            assert sorted(lines) == sorted(
                [mark, f"{name}/0"]
                for mark in "SE"
                for name in ["hold:0", "hold:1", "hold:2", "last"]
            )
            until(lambda: dead(family[1::2]), seconds=10)


def state(dsn: str, run_id: str) -> str:
    with connect(dsn) as connection:
        return status(connection, run_id)
