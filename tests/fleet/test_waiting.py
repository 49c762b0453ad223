"""Runs that wait cost no process; what wakes them wakes them once; what ends them ends them all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smithers.operations.verifying import verify
from support.fleet import Fleet, dead, fleet, held_pids, processes_marked
from support.runs import WORKFLOWS, attempts, connect, count_events, status
from support.waiting import until

HELD = str(WORKFLOWS / "held.py")
pytestmark = pytest.mark.slow


def command(run_id: str, folder: Path, *words: str, **shape: Any) -> list[str]:
    given = json.dumps({"folder": str(folder), **shape})
    return ["up", HELD, "--run-id", run_id, "--input", given, *words]


def begin(whole: Fleet, *words: str) -> subprocess.Popen[str]:
    """A smithers command that is not waited for."""
    return subprocess.Popen(
        [sys.executable, "-m", "smithers.cli.main", *words],
        env=whole.environment(),
        cwd=whole.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_timer_is_fired_by_the_engine_that_stayed(database: str, tmp_path: Path) -> None:
    home = str(tmp_path / ".smithers")
    (tmp_path / "go").touch()
    with fleet(database, tmp_path, lease=3.0) as whole, connect(database) as connection:
        stayed = whole.cli(*command("stays", tmp_path, nap=1.0))
        assert stayed.returncode == 0, stayed.stdout + stayed.stderr
        assert status(connection, "stays") == "finished"
        left = whole.cli(*command("leaves", tmp_path, "--park", nap=3.0))
        said = left.stdout + left.stderr
        assert left.returncode == 3, said
        assert "waits: timer: nap" in said, said
        assert f"smithers up {HELD} --run-id leaves --resume" in said, said
        assert status(connection, "leaves") == "waiting-timer"
        until(lambda: not processes_marked(home), seconds=10)
        # Nobody fires it while nobody is there; then it is fired at once.
        due = (
            "select bool_and(due_at < smithers.now()) from smithers.timers where run_id = 'leaves'"
        )
        until(lambda: connection.execute(due).fetchone() == (True,), seconds=20)
        assert status(connection, "leaves") == "waiting-timer"
        on = whole.cli("up", HELD, "--run-id", "leaves", "--resume")
        assert on.returncode == 0, on.stdout + on.stderr
        for run_id in ("stays", "leaves"):
            assert count_events(connection, run_id, "timer-fired") == 1
        early = "select count(*) from smithers.timers where fired_at < due_at"
        assert connection.execute(early).fetchone() == (0,)
        until(lambda: not processes_marked(home), seconds=10)
        assert verify(connection) == []


def test_cancel_ends_every_process_of_a_run(database: str, tmp_path: Path) -> None:
    home = str(tmp_path / ".smithers")
    with fleet(database, tmp_path, lease=3.0) as whole, connect(database) as connection:
        started = whole.cli(*command("c1", tmp_path, "-d", width=3))
        assert started.returncode == 0, started.stderr
        assert "c1" in started.stdout
        family = [pid for _, *both in held_pids(tmp_path, bodies=3) for pid in both]
        assert whole.cli("cancel", "c1").returncode == 0
        until(lambda: dead(family) and not processes_marked(home), seconds=10)
        assert status(connection, "c1") == "cancelled"
        assert {state for _, _, state in attempts(connection, "c1")} == {"cancelled"}
        assert whole.cli("cancel", "c1").returncode == 4
        assert whole.cli("why", "c1").returncode == 4
        assert verify(connection) == []


def test_a_pause_drains_and_two_may_resume_at_once(database: str, tmp_path: Path) -> None:
    home = str(tmp_path / ".smithers")
    with fleet(database, tmp_path, lease=3.0) as whole, connect(database) as connection:
        started = whole.cli(*command("p1", tmp_path, "-d", width=3))
        assert started.returncode == 0, started.stderr
        held_pids(tmp_path, bodies=3)
        assert whole.cli("pause", "p1").returncode == 0
        assert status(connection, "p1") == "running", "three bodies are in flight"
        (tmp_path / "go").touch()
        until(lambda: status(connection, "p1") == "paused", seconds=15)
        held = [(f"hold:{number}", 1, "finished") for number in range(3)]
        assert attempts(connection, "p1") == held, "they end, nothing begins"
        until(lambda: not processes_marked(home), seconds=15)
        epoch = "select epoch from smithers.run_state where run_id = 'p1'"
        before = connection.execute(epoch).fetchone()
        both = [begin(whole, "up", HELD, "--run-id", "p1", "--resume") for _ in range(2)]
        said = [each.communicate(timeout=60)[0] for each in both]
        assert [each.returncode for each in both] == [0, 0], said
        assert status(connection, "p1") == "finished"
        assert attempts(connection, "p1") == [*held, ("last", 1, "finished")]
        assert count_events(connection, "p1", "run-resumed") == 1, said
        after = connection.execute(epoch).fetchone()
        assert before is not None
        assert after == (before[0] + 1,), "one scheduler has advanced it"
        until(lambda: not processes_marked(home), seconds=15)
        assert verify(connection) == []


def test_a_decision_wakes_an_embedded_run_once(tmp_path: Path) -> None:
    """No process lives but Postgres; of four decisions at once one counts, and the run ends."""
    home = str(tmp_path / ".smithers")
    (tmp_path / "go").touch()
    with fleet("", tmp_path, lease=3.0) as whole:
        try:
            parked = whole.cli(*command("e1", tmp_path, gate=True))
            assert parked.returncode == 3, parked.stdout + parked.stderr
            until(lambda: not processes_marked(home), seconds=10)
            decisions = [begin(whole, "approve", "e1", "--by", f"p{n}") for n in range(4)]
            said = [each.communicate(timeout=60)[0] for each in decisions]
            assert sorted(each.returncode for each in decisions) == [0, 4, 4, 4], said

            def seen() -> Any:
                return json.loads(whole.cli("status", "e1", "--json").stdout)

            until(lambda: seen()["status"] == "finished", seconds=30)
            until(lambda: not processes_marked(home), seconds=20)
            lines = [line.split(" ")[::2] for line in (tmp_path / "log").read_text().splitlines()]
            assert sorted(lines) == sorted([m, k] for m in "SE" for k in ("hold:0/0", "last/0"))
            events = json.loads(whole.cli("events", "e1", "--json").stdout)
            kinds = [event["type"] for event in events]
            assert kinds.count("approval-decided") == 1
            assert whole.cli("verify").returncode == 0
        finally:
            whole.cli("db", "stop")
