"""Many processes of every role at once: they share the work, and nothing is done twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from smithers.operations.verifying import verify
from support.fleet import fleet
from support.runs import (
    approve_open,
    bodies_started_after_completion,
    connect,
    start_run,
    statuses,
)
from support.runs import signal as send_signal
from support.waiting import until

ROLES = ["scheduler"] * 2 + ["supervisor"] * 2 + ["worker"] * 5
RUNS = 6
BODIES = 13  # of the mixed workflow: first, eight of the fan, three laps, last


@pytest.mark.slow
def test_nine_processes_do_everything_once(database: str, tmp_path: Path) -> None:
    log = tmp_path / "bodies.log"
    log.touch()
    with connect(database) as connection, fleet(database, tmp_path, ROLES, lease=6.0) as whole:
        for number in range(RUNS):
            shape = {"log": str(log), "seconds": 0.1, "width": 8}
            run_id = start_run(connection, "mixed", shape, run_id=f"run-{number}")
            send_signal(connection, run_id, "go", {"payload": number})

        def finished() -> bool:
            approve_open(connection)
            return statuses(connection) == {"finished": RUNS}

        until(finished, seconds=90, pause=0.05)
        assert len(whole.living()) == len(ROLES), whole.logs()
        lines = [line.split(" ") for line in log.read_text().splitlines()]
        # Nobody was hurt, so every body began and ended exactly once.
        for mark in "SE":
            keys = [(run, key) for kind, run, key, _ in lines if kind == mark]
            assert len(keys) == len(set(keys)) == RUNS * BODIES
        assert bodies_started_after_completion(connection, log) == []
        owners = connection.execute(
            "select count(distinct owner) from smithers.attempts where origin = 'worker'"
        ).fetchone()
        assert owners is not None
        assert owners[0] > 1, "one worker did it all"
        unfinished = connection.execute(
            "select run_id, node_id, state from smithers.attempts where state <> 'finished'"
        ).fetchall()
        assert unfinished == []
        assert verify(connection) == []
