"""`smithers up` as a person uses it: parked, decided, resumed by two at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from smithers.process.procfs import processes
from smithers.sql.calls import Connection
from support.families import children_of
from support.fleet import Fleet, fleet, processes_marked
from support.runs import WORKFLOWS, attempts, connect, status
from support.waiting import until

MIXED = str(WORKFLOWS / "mixed.py")


def begin(whole: Fleet, run_id: str, *words: str) -> subprocess.CompletedProcess[str]:
    shape = json.dumps({"log": str(whole.folder / "log"), "seconds": 0.05, "width": 3})
    return whole.cli("up", MIXED, "--run-id", run_id, "--input", shape, *words)


def up(whole: Fleet, run_id: str) -> subprocess.Popen[str]:
    return run_in_background(whole, "up", MIXED, "--run-id", run_id, "--resume")


def run_in_background(whole: Fleet, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "smithers.cli.main", *words],
        env=whole.environment(),
        cwd=whole.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow
def test_a_run_that_waits_for_a_person_is_rows_and_no_process(
    database: str, tmp_path: Path
) -> None:
    with fleet(database, tmp_path, lease=3.0) as whole, connect(database) as connection:
        done = begin(whole, "r1")
        assert done.returncode == 3, done.stdout + done.stderr
        assert "smithers approve r1 --node gate" in done.stdout + done.stderr
        assert status(connection, "r1") == "waiting-approval"
        until(lambda: not processes_marked(str(tmp_path / ".smithers")), seconds=10)
        assert whole.cli("approve", "r1", "--no-resume").returncode == 0
        assert whole.cli("approve", "r1", "--no-resume").returncode == 4
        assert whole.cli("signal", "r1", "go", "--data", "{}", "--no-resume").returncode == 0
        # Two resume at once: one advances it, the other attaches; both see the end.
        both = [up(whole, "r1"), up(whole, "r1")]
        said = [each.communicate(timeout=60)[0] for each in both]
        assert [each.returncode for each in both] == [0, 0], said
        assert status(connection, "r1") == "finished"
        assert decided(connection, "r1") == 1
        again = whole.cli("up", MIXED, "--run-id", "r1", "--resume")
        assert again.returncode == 0, again.stderr
        assert whole.cli("verify", "r1").returncode == 0
        first = whole.cli("status", "r1", "--json").stdout
        assert first == whole.cli("status", "r1", "--json").stdout
        assert json.loads(first)["verdict"] == "done"


def decided(connection: Connection, run_id: str) -> int:
    row = connection.execute(
        "select count(*) from smithers.events where run_id = %s and type = 'approval-decided'",
        [run_id],
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.slow
def test_a_fleet_whose_nurseries_die_is_forked_from_new_ones(database: str, tmp_path: Path) -> None:
    """Each nursery takes with it what it has forked, and the run goes on to its end."""
    shape = json.dumps({"log": str(tmp_path / "log"), "seconds": 0.5, "width": 6})
    words = ["up", MIXED, "--run-id", "n1", "--input", shape]
    with fleet(database, tmp_path, lease=2.0) as whole, connect(database) as connection:
        process = run_in_background(whole, *words)
        for _ in range(2):
            before = until(lambda: roles_of(process.pid), seconds=20)
            until((tmp_path / "log").exists, seconds=20)
            for nursery in children_of(process.pid):
                os.kill(nursery, signal.SIGKILL)
            until(partial(gone, before), seconds=20)
        said = process.communicate(timeout=60)[0]
        assert process.returncode == 3, said
        assert status(connection, "n1") == "waiting-approval"
        assert whole.cli("verify", "n1").returncode == 0
        until(lambda: not processes_marked(str(tmp_path / ".smithers")), seconds=10)


def roles_of(pid: int) -> list[int]:
    """The scheduler, the worker and the supervisor of an `up`, once they are there."""
    found = [deeper for child in children_of(pid) for deeper in children_of(child)]
    roles = [each for each in found if b"smithers.cli.main" in command(each)]
    return roles if len(roles) == 3 else []


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def gone(pids: list[int]) -> bool:
    return not {proc.pid for proc in processes().values() if not proc.dead} & set(pids)


@pytest.mark.slow
def test_what_runs_when_up_is_killed_may_finish(database: str, tmp_path: Path) -> None:
    """Its fleet is asked to end and drains: no attempt fails, and no try is used up."""
    shape = json.dumps({"log": str(tmp_path / "log"), "seconds": 2.0, "width": 2})
    words = ["up", MIXED, "--run-id", "k1", "--input", shape]
    with fleet(database, tmp_path, lease=3.0) as whole, connect(database) as connection:
        process = run_in_background(whole, *words)
        until((tmp_path / "log").exists, seconds=20)
        process.kill()
        process.communicate(timeout=20)
        until(lambda: not processes_marked(str(tmp_path / ".smithers")), seconds=30)
        ended = attempts(connection, "k1")
        assert ended
        assert {state for _, _, state in ended} == {"finished"}, ended
