"""Nurseries: their children are as if exec had started them, and never outlive whom they serve."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from smithers.process.child import ChildSpec, Spawner
from smithers.process.nursery import PYTHON, Born, Nursery, NurseryGoneError
from smithers.process.output import Pump
from smithers.process.procfs import process
from support.waiting import until

SUPPORT = str(Path(__file__).parents[1])
BORN = "support.born"


def alive(pid: int) -> bool:
    found = process(pid)
    return found is not None and not found.dead


@pytest.fixture
def nursery() -> Generator[Nursery]:
    nursery = Nursery.launch([BORN], {**os.environ, "PYTHONPATH": SUPPORT, "SECRET": "of-nursery"})
    yield nursery
    nursery.close()


class Bearing:
    """Asks a nursery for children whose output goes to a file."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"

    def bear(self, nursery: Nursery, *words: str, **options: Any) -> Born:
        environ = {"PATH": os.environ["PATH"], "SMITHERS_CLAIM_ID": "db:claim"}
        with self.log.open("wb") as log:
            return nursery.bear(BORN, words, environ, output=log.fileno(), **options)

    def facts(self) -> dict[str, Any]:
        return dict(json.loads(until(lambda: self.log.read_text().partition("\n")[0])))


@pytest.fixture
def bearing(tmp_path: Path) -> Bearing:
    return Bearing(tmp_path)


def test_a_child_is_as_if_exec_had_started_it(
    nursery: Nursery, bearing: Bearing, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    born = bearing.bear(
        nursery, "0", "a b", passed=[("PIPE_FD", writing)], cwd=str(tmp_path),
        first="SMITHERS_CLAIM_ID",
    )  # fmt: skip
    until(lambda: born.poll() is not None)
    facts = bearing.facts()
    assert born.poll() == 0
    assert facts["words"] == ["a b"]
    assert facts["cwd"] == str(tmp_path)
    assert facts["session"]
    passed = int(facts["environ"].pop("PIPE_FD"))
    assert facts["environ"] == {
        "PATH": os.environ["PATH"],
        "SMITHERS_CLAIM_ID": "db:claim",
        "SMITHERS_PARENT_PID": str(nursery.pid),
    }
    assert facts["shown"][0] == "SMITHERS_CLAIM_ID=db:claim"
    assert "SECRET" not in str(facts["shown"])
    assert [word for word in facts["command"] if word] == [*PYTHON, BORN, "0", "a b"]
    assert len(set(facts["fds"]) - {0, 1, 2, passed}) == 1, "the folder that lists them"
    os.close(reading)
    os.close(writing)
    born.close()


def test_exit_codes_signals_and_tracebacks_are_told(nursery: Nursery, bearing: Bearing) -> None:
    seven = bearing.bear(nursery, "7")
    killed = bearing.bear(nursery, "stay")
    killed.signal(signal.SIGKILL)
    assert until(seven.poll) == 7
    assert until(killed.poll) == -signal.SIGKILL
    raised = bearing.bear(nursery, "raise")
    assert until(raised.poll) == 1
    assert "RuntimeError: on purpose" in bearing.log.read_text()
    killed.signal(signal.SIGTERM)  # nothing happens
    for born in (seven, killed, raised):
        born.close()


def test_a_nursery_ends_with_those_whom_it_serves_and_not_by_a_signal_to_all(
    nursery: Nursery, bearing: Bearing
) -> None:
    """As from whoever stops a control group; its children may be asked as ever."""
    assert nursery.pid is not None
    born = bearing.bear(nursery, "stay")
    bearing.facts()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        os.kill(nursery.pid, number)
    other = bearing.bear(nursery, "3")
    assert until(other.poll) == 3
    assert born.poll() is None
    born.signal(signal.SIGTERM)
    assert until(born.poll) == -signal.SIGTERM
    nursery.sock.close()
    until(lambda: nursery.pid is not None and not alive(nursery.pid))
    for each in (born, other):
        each.close()


def test_children_die_with_their_nursery(nursery: Nursery, bearing: Bearing) -> None:
    born = bearing.bear(nursery, "stay")
    assert born.poll() is None
    assert nursery.pid is not None
    os.kill(nursery.pid, signal.SIGKILL)
    until(lambda: not alive(born.pid))
    assert born.poll() == -signal.SIGKILL
    with pytest.raises(NurseryGoneError):
        bearing.bear(nursery, "0")
    born.close()


def test_children_die_with_the_last_who_can_speak_for_them(
    nursery: Nursery, bearing: Bearing
) -> None:
    mine = bearing.bear(nursery, "stay")
    other = nursery.share()
    theirs = bearing.bear(other, "stay")
    other.close()
    until(lambda: not alive(theirs.pid))
    assert alive(mine.pid)
    for born in (mine, theirs):
        born.close()


def test_a_nursery_dies_with_the_process_that_launched_it(tmp_path: Path) -> None:
    code = (
        "import os, time; from smithers.process.nursery import Nursery;"
        f"n = Nursery.launch(['{BORN}'], dict(os.environ));"
        "log = open('log', 'wb');"
        f"b = n.bear('{BORN}', ['stay'], dict(os.environ), output=log.fileno());"
        "print(n.pid, b.pid, flush=True); time.sleep(600)"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SUPPORT},
        stdout=subprocess.PIPE,
    )
    assert launcher.stdout is not None
    pids = [int(word) for word in launcher.stdout.readline().split()]
    assert [alive(pid) for pid in pids] == [True, True]
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()
    until(lambda: not any(alive(pid) for pid in pids))


def test_a_fork_of_ones_own_shares_no_descriptor_and_no_lock(tmp_path: Path) -> None:
    """It is made of a process that holds a file and has started children before."""
    code = f"""
import os, subprocess
from smithers.process.nursery import Nursery
from smithers.process.reaper import REAPER
held = open("held", "w")
n = Nursery.fork(["{BORN}"])
with open("log", "wb") as log:
    b = n.bear("{BORN}", ["3"], dict(os.environ), output=log.fileno())
while b.poll() is None:
    pass
print(b.poll(), sorted(os.listdir(f"/proc/{{n.pid}}/fd"), key=int)[:4], flush=True)
n.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SUPPORT},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("3 "), done.stderr
    (tmp_path / "log").read_text().index('"words"')


def test_a_spawner_goes_on_with_another_nursery(tmp_path: Path) -> None:
    launched: list[Nursery] = []

    def launch() -> Nursery:
        launched.append(Nursery.launch([BORN], {**os.environ, "PYTHONPATH": SUPPORT}))
        return launched[-1]

    pump = Pump()
    spawner = Spawner(lambda: None, pump=pump, launch=launch)
    spec = ChildSpec(argv=[*PYTHON, BORN, "stay"], environ=dict(os.environ))
    first = spawner.spawn(spec)
    first_nursery = launched[0].pid
    assert first_nursery is not None
    os.kill(first_nursery, signal.SIGKILL)
    assert first.wait(20) == -signal.SIGKILL
    second = spawner.spawn(spec)
    assert second.poll() is None
    assert len(launched) == 2
    assert second.kill() >= 1
    assert second.poll() == -signal.SIGKILL
    for child in (first, second):
        child.close()
    spawner.close()
    pump.close()


def test_what_is_no_module_of_ours_is_started_by_exec(tmp_path: Path) -> None:
    pump = Pump()

    def never() -> Nursery:
        raise AssertionError("no nursery is needed")

    spawner = Spawner(lambda: None, pump=pump, launch=never, nursery=None)
    spec = ChildSpec(argv=[sys.executable, "-c", "raise SystemExit(5)"], environ=dict(os.environ))
    child = spawner.spawn(spec)
    assert child.wait(20) == 5
    child.close()
    spawner.close()
    pump.close()
