"""Killing reaches the last grandchild, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Generator
from pathlib import Path
from uuid import uuid4

import pytest

from smithers.process.child import Child, ChildSpec, spawn
from smithers.process.environment import (
    CLAIM_VARIABLE,
    EXECUTOR_VARIABLE,
    Mark,
    child_environment,
    claim_mark,
    executor_mark,
)
from smithers.process.kill import members, sweep
from smithers.process.procfs import environment, process, processes, variable
from smithers.process.reaper import REAPER
from support.waiting import until

DAEMON = """
import os, sys, time
def daemon(environ):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvpe("sleep", ["sleep", "601"], environ)
        os._exit(0)
    os.wait()
"""
ESCAPES = (
    DAEMON
    + """
daemon(dict(os.environ))                 # only its mark is left
import subprocess
subprocess.Popen(["sleep", "602"], env={})                             # session and parent
subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 603 & wait"], start_new_session=True)
print("ready", flush=True)
time.sleep(600)
"""
)


@pytest.fixture
def database() -> str:
    return uuid4().hex


@pytest.fixture
def child(database: str) -> Generator[Child, None, None]:
    mark = executor_mark(database, 7, uuid4())
    environ = child_environment(mark, home="/nowhere")
    child = spawn(ChildSpec(argv=[sys.executable, "-c", ESCAPES], environ=environ, mark=mark))
    until(lambda: child.output.drain() and "ready" in child.output.tail())
    yield child
    child.kill()
    child.close()


def alive(pids: Collection[int]) -> list[int]:
    return [pid for pid in pids if (proc := process(pid)) is not None and not proc.dead]


def test_a_kill_reaches_daemons_new_sessions_and_cleared_environments(child: Child) -> None:
    until(lambda: len(members(child.tree)) == 5)
    pids = [proc.pid for proc in members(child.tree)]
    assert child.kill() == 5
    assert alive(pids) == []
    assert child.poll() == -signal.SIGKILL


def test_a_kill_reaches_those_that_survive_the_root(child: Child) -> None:
    until(lambda: len(members(child.tree)) == 5)
    pids = [proc.pid for proc in members(child.tree)]
    child.signal(signal.SIGKILL)
    assert child.wait(20) == -signal.SIGKILL
    child.kill()
    assert alive(pids) == []


def test_a_stopped_tree_stands_still_and_goes_on(child: Child) -> None:
    until(lambda: len(members(child.tree)) == 5)
    child.stop()
    until(lambda: all(proc.stopped for proc in members(child.tree)))
    child.resume()
    until(lambda: not any(proc.stopped for proc in members(child.tree)))


CHAINS = """
import os, time
end = time.monotonic() + 20              # never longer, whatever becomes of the test
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < end:    # a chain: each lives 20 ms after its child is born
            if os.fork() != 0:
                time.sleep(0.02)
                os._exit(0)
        os._exit(0)
print("ready", flush=True)
time.sleep(600)
"""


def test_a_tree_that_forks_all_the_time_is_killed() -> None:
    mark = executor_mark(uuid4().hex, 7, uuid4())
    environ = child_environment(mark, home="/nowhere")
    child = spawn(ChildSpec(argv=[sys.executable, "-c", CHAINS], environ=environ, mark=mark))
    try:
        until(lambda: child.output.drain() and "ready" in child.output.tail())
    finally:
        child.kill()
    assert members(child.tree) == []
    left = [p for p in processes() if variable(environment(p), mark.name) == mark.value]
    assert alive(left) == []
    child.close()


def test_a_sweep_kills_the_dead_owners_processes_of_its_own_database_only(
    database: str, tmp_path: Path
) -> None:
    other = executor_mark(uuid4().hex, 1, uuid4())
    living = executor_mark(database, 2, uuid4())
    dead = executor_mark(database, 3, uuid4())
    claim = claim_mark(database, uuid4(), run_id="r", node_id="a:\udc80b", iteration=0, attempt=1)
    marks = [other, living, dead, claim]
    procs = [
        subprocess.Popen(["sleep", "600"], env=child_environment(mark, home="/nowhere"))
        for mark in marks
    ]
    until(lambda: all(environment(p.pid) for p in procs))
    asked: list[Mark] = []

    def live(found: Collection[Mark]) -> Collection[Mark]:
        asked.extend(found)
        return [living]

    swept = sweep(database, live)
    assert set(asked) == {living, dead, claim}
    assert dict(swept) == {dead: 1, claim: 1}
    assert [p.poll() for p in procs] == [None, None, -9, -9]
    for proc in procs:
        proc.kill()
        proc.wait()


def test_marks_say_whose_they_are() -> None:
    uuid = uuid4()
    assert executor_mark("db", 12, uuid).owner == 12
    assert executor_mark("db", 12, uuid).database == "db"
    assert (
        claim_mark("db", uuid, run_id="r", node_id="a:b", iteration=1, attempt=2).claim_id == uuid
    )
    assert Mark(EXECUTOR_VARIABLE, "db:x").owner is None
    assert Mark(CLAIM_VARIABLE, "db:x").claim_id is None


def test_a_child_sees_no_secret_of_the_engine() -> None:
    base = {
        "PATH": "/bin",
        "SMITHERS_DATABASE_URL": "postgresql://a:secret@h/d",
        "DATABASE_URL": "postgresql://a:secret@h/d",
        "PGPASSWORD": "secret",
        "PGDATA_OF_MINE": "kept",
        "SMITHERS_LOG_LEVEL": "debug",
        "SMITHERS_TEST_DSN": "secret",
        EXECUTOR_VARIABLE: "outer",
    }
    environ = child_environment(
        None, home="/h", database_url="postgresql://a:secret@h/d", base=base
    )
    assert "secret" not in repr(environ)
    assert environ["PGDATA_OF_MINE"] == "kept"
    assert environ["SMITHERS_LOG_LEVEL"] == "debug"
    assert environ["SMITHERS_HOME"] == "/h"
    assert EXECUTOR_VARIABLE not in environ


def test_a_stranger_is_reaped_only_when_nobody_else_does() -> None:
    ours = subprocess.Popen(["true"], start_new_session=True)
    until(lambda: (proc := process(ours.pid)) is not None and proc.dead)
    REAPER.reap_strangers()
    assert ours.wait() == 0
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os._exit(3)
    until(lambda: (proc := process(pid)) is not None and proc.dead)
    REAPER.reap_strangers()
    assert process(pid) is not None
    REAPER.reap_strangers()
    assert process(pid) is None
