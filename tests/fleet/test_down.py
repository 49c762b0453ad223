"""`smithers down`: nothing of a project runs any more, and with --purge nothing of it is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from smithers.sql.embedded import Place
from support.fleet import processes_marked
from support.runs import WORKFLOWS
from support.screen import running
from support.waiting import until

HELD = str(WORKFLOWS / "held.py")
SMITHERS = [sys.executable, "-m", "smithers.cli.main"]

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Generator[Path]:
    """A folder whose home is its own, whatever the tests' environment says."""
    folder = tmp_path / "project"
    folder.mkdir()
    yield folder
    smithers(folder, "db", "stop")


def environ() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SMITHERS_")}
    return {**kept, "SMITHERS_LEASE_SECONDS": "3"}


def smithers(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SMITHERS, *words],
        cwd=folder,
        env=environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def start(folder: Path, run_id: str) -> subprocess.CompletedProcess[str]:
    shape = json.dumps({"folder": str(folder), "width": 2})
    return smithers(folder, "up", HELD, "--run-id", run_id, "--input", shape, "-d")


def running_here(home: Path) -> list[int]:
    return [pid for pid in processes_marked(f"SMITHERS_HOME={home}") if pid != os.getpid()]


def test_nothing_is_there(project: Path) -> None:
    done = smithers(project, "down", "--purge")
    assert (done.returncode, done.stdout.strip()) == (0, "nothing runs here")
    assert list(project.iterdir()) == []


def test_an_engine_and_a_worker_end_and_their_run_can_be_resumed(project: Path) -> None:
    home = project / ".smithers"
    started = start(project, "d1")
    assert started.returncode == 0, started.stderr
    until(lambda: "in-progress" in smithers(project, "status", "d1", "--json").stdout, seconds=20)
    with subprocess.Popen(
        [*SMITHERS, "worker"], cwd=project, env=environ(), stderr=subprocess.DEVNULL
    ) as worker:
        until(lambda: worker.pid in listed(project), seconds=20)
        done = smithers(project, "down", "--json", "--grace", "2")
        answer = json.loads(done.stdout)
        assert worker.wait(20) == 0
    assert answer["database_stopped"]
    assert worker.pid in answer["stopped"]
    assert len(answer["stopped"]) + len(answer["killed"]) == 2, answer
    until(lambda: not running_here(home), seconds=10)
    assert json.loads(smithers(project, "status", "d1", "--json").stdout)["status"] == "running"
    assert smithers(project, "verify").returncode == 0


def listed(project: Path) -> list[int]:
    text = smithers(project, "db", "psql", "-Atc", "select pid from smithers.processes").stdout
    return [int(word) for word in text.split()]


def test_purged_it_leaves_no_trace(project: Path) -> None:
    """Also of a home whose path is too long for a socket, and only after a yes at a terminal."""
    home = project / ("h" * 90) / ".smithers"
    home.parent.mkdir()
    at = {**environ(), "SMITHERS_HOME": str(home)}
    socket_dir = Place(home).socket_dir
    words = [*SMITHERS, "ps"]
    assert subprocess.run(words, cwd=project, env=at, check=False).returncode == 0
    assert socket_dir.is_dir()
    assert home not in socket_dir.parents
    down = [*SMITHERS, "down", "--purge"]
    with running(down, environment=at, folder=project, width=200, height=30) as opened:
        opened.read_until("[y/N]")
        opened.type("n\r")
        assert opened.finish() == 130
    assert home.exists()
    with running(down, environment=at, folder=project, width=200, height=30) as opened:
        opened.read_until("[y/N]")
        opened.type("y\r")
        assert opened.finish() == 0, opened.raw
    assert list(home.parent.iterdir()) == []
    assert not socket_dir.exists()
    assert running_here(home) == []


def test_what_is_not_ours_is_left_alone(project: Path) -> None:
    home = project / ".smithers"
    assert smithers(project, "ps").returncode == 0
    (home / "thesis.txt").write_text("years of work")
    done = smithers(project, "down", "--purge")
    assert done.returncode == 4
    assert done.stderr.startswith("error[PURGE_REFUSED]: ")
    assert "thesis.txt" in done.stderr
    assert "yes" in smithers(project, "db", "status").stdout, "nothing was stopped"
    (home / "thesis.txt").unlink()
    assert smithers(project, "down", "--purge").returncode == 0
    assert not home.exists()
