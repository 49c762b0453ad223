"""A scheduler process on a real database; the test itself does the workers' part."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import pytest

from smithers.bundle.build import build
from smithers.bundle.store import store
from smithers.sql import operator, worker
from smithers.sql.calls import Connection
from support import factory
from support.families import hosts_of
from support.fleet import Fleet
from support.runs import approve_open, connect, status
from support.runs import signal as send_signal
from support.waiting import until

pytestmark = pytest.mark.slow

HEAD = """
import os, sys, time
from pydantic import BaseModel
from smithers.workflow import (Approval, Ctx, Loop, Node, Parallel, Sequence, Task, Timer,
                               WaitForEvent, workflow)

class Input(BaseModel):
    size: int = 1

class Out(BaseModel):
    n: int

class F(BaseModel):
    x: float

def work(n: int = 0) -> Out:
    return Out(n=n)

@workflow(input=Input)
def flow(ctx: Ctx[Input]) -> Node:
"""
ONE = HEAD + "    return Sequence(Task('a', Out, run=work))\n"
CHAIN = (
    HEAD + "    return Sequence(*(Task(f't{n}', Out, run=work) for n in range(ctx.input.size)))\n"
)


class Bench:
    """One database, workflows written on the spot, and hands that do the tasks."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.folder = folder
        self.conn = connect(dsn)
        self.fleet = Fleet(dsn, folder)
        self.worker = factory.register(self.conn, "worker", lease=timedelta(hours=1))

    def close(self) -> None:
        self.fleet.stop()
        self.conn.close()

    def start(self, run_id: str, code: str, **run_input: object) -> str:
        entry = self.folder / run_id / "flow.py"
        entry.parent.mkdir()
        (entry.parent / "pyproject.toml").touch()
        entry.write_text(code)
        bundle = build(entry)
        store(self.conn, bundle)
        operator.create_run(
            self.conn,
            {
                "run_id": run_id,
                "workflow": "flow",
                "path": str(entry),
                "source_hash": bundle.source_hash,
                "input": run_input,
                "config": {},
                "request_id": run_id,
            },
        )
        entry.unlink()  # a scheduler loads what is stored, never what is on disk
        return run_id

    def work(self, limit: int = 100) -> int:
        """Claim ready tasks and finish them all; return how many."""
        tasks = factory.claim(self.conn, self.worker, limit=limit)
        items = [
            {
                "run_id": task.run_id,
                "node_id": task.node_id,
                "iteration": task.iteration,
                "attempt": task.attempt,
                "claim_id": str(task.claim_id),
                "name": task.descriptor["output"]["name"],
                "shape": task.descriptor["output"]["shape"],
                "output": {"n": 1},
            }
            for task in tasks
        ]
        assert all(worker.complete_attempts(self.conn, items)) if items else True
        return len(items)

    def ends(self, run_id: str, expected: str, *, seconds: float = 60.0) -> None:
        """Do tasks until the run has this status."""

        def there() -> bool:
            self.work()
            return status(self.conn, run_id) == expected

        try:
            until(there, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(
                f"{run_id} is {status(self.conn, run_id)}: {self.error(run_id)}\n"
                f"{self.fleet.logs()}"
            ) from error

    def progress(self) -> None:
        """Do tasks until there is a frame more."""
        before = self.one("select count(*) from smithers.frames")

        def more() -> bool:
            self.work()
            return bool(self.one("select count(*) from smithers.frames") > before)

        until(more, seconds=60)

    def one(self, query: LiteralString, *params: object) -> Any:
        row = self.conn.execute(query, params).fetchone()
        return None if row is None else row[0]

    def error(self, run_id: str) -> Any:
        return self.one("select error from smithers.run_state where run_id = %s", run_id)

    def owner(self, run_id: str) -> Any:
        return self.one("select owner from smithers.run_state where run_id = %s", run_id)

    def frames(self, run_id: str) -> list[int]:
        rows = self.conn.execute(
            "select frame_no from smithers.frames where run_id = %s order by 1", [run_id]
        ).fetchall()
        return [row[0] for row in rows]


@pytest.fixture
def bench(database: str, tmp_path: Path) -> Generator[Bench, None, None]:
    bench = Bench(database, tmp_path)
    yield bench
    bench.close()


def none_alive(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_chain_is_advanced_to_its_end(bench: Bench) -> None:
    bench.fleet.start("scheduler")
    bench.start("r1", CHAIN, size=5)
    bench.ends("r1", "finished")
    frames = bench.frames("r1")
    assert frames == list(range(1, len(frames) + 1))
    assert bench.owner("r1") is None
    bodies = bench.one("select count(*) from smithers.frames where body is not null")
    assert bodies == 1, "the tree never changed"


def test_waits_park_the_run_and_are_woken(bench: Bench) -> None:
    bench.fleet.start("scheduler")
    waits = (
        "    return Sequence(Timer('nap', 0.5), Approval('ok', title='?'), WaitForEvent('go'))\n"
    )
    bench.start("r1", HEAD + waits)
    until(lambda: status(bench.conn, "r1") in ("waiting-timer", "waiting-approval"))
    until(lambda: status(bench.conn, "r1") == "waiting-approval")
    assert bench.owner("r1") is None
    assert approve_open(bench.conn) == 1
    until(lambda: status(bench.conn, "r1") == "waiting-event")
    send_signal(bench.conn, "r1", "go", {"x": 1})
    bench.ends("r1", "finished")
    fired = bench.one("select fired_at - due_at from smithers.timers")
    assert timedelta(0) <= fired < timedelta(seconds=5)


BAD: dict[str, tuple[str, str]] = {
    "raises": ("    raise ValueError('no luck')\n", "RENDER_FAILED"),
    "exits": ("    os._exit(3)\n", "RENDER_FAILED"),
    "hangs": ("    time.sleep(3600)\n", "RENDER_TIMEOUT"),
    "nonsense": ("    return 42\n", "INVALID_NODE"),
    "twins": (
        "    return Parallel(Task('a', Out, run=work), Task('a', Out, run=work))\n",
        "DUPLICATE_ID",
    ),
    "floods": ("    while True:\n        print('x' * 10000)\n", "RENDER_TIMEOUT"),
    "nan": ("    return Sequence(Task('a', F, value=F(x=float('nan'))))\n", "VALUE"),
}


def test_bad_workflows_fail_typed_and_harm_nobody(bench: Bench) -> None:
    bench.fleet.settings["SMITHERS_RENDER_TIMEOUT_SECONDS"] = "3"
    for name, (body, _) in BAD.items():
        bench.start(name, HEAD + body)
    bench.start("import", "import os\nos._exit(9)\n")
    bench.start("raise", "raise RuntimeError('at import')\n")
    bench.start("good", CHAIN, size=3)
    bench.fleet.start("scheduler")
    bench.ends("good", "finished")
    for name in [*BAD, "import", "raise"]:
        bench.ends(name, "failed")
    codes = {name: bench.error(name)["code"] for name in BAD}
    for name, (_, code) in BAD.items():
        assert code in codes[name], (name, bench.error(name))
    assert bench.error("raise")["code"] == "IMPORT_FAILED"
    assert bench.error("raise")["message"] == "flow.py:1: RuntimeError: at import"
    assert "at import" in bench.error("raise")["details"]["traceback"]
    assert bench.error("import")["code"] == "RENDER_FAILED"
    assert bench.one("select max(next_event_seq) from smithers.run_state") < 100


def test_a_hang_delays_nobody_of_its_own_version(bench: Bench) -> None:
    code = HEAD + (
        "    if ctx.input.size == 0:\n        time.sleep(3600)\n"
        "    return Sequence(Task('a', Out, run=work))\n"
    )
    bench.fleet.settings["SMITHERS_RENDER_TIMEOUT_SECONDS"] = "5"
    bench.start("warm", code, size=1)
    bench.fleet.start("scheduler")
    bench.ends("warm", "finished")
    bench.start("hung", code, size=0)
    until(lambda: bench.owner("hung") is not None)
    for number in range(5):
        bench.start(f"good{number}", code, size=1)
    for number in range(5):
        bench.ends(f"good{number}", "finished", seconds=30)
    assert status(bench.conn, "hung") == "running"
    bench.ends("hung", "failed")
    assert bench.error("hung")["code"] == "RENDER_TIMEOUT"


def test_sigterm_hands_the_runs_back_and_leaves_nothing(bench: Bench) -> None:
    scheduler = bench.fleet.start("scheduler")
    bench.start("r1", ONE)
    until(lambda: bench.one("select count(*) from smithers.ready_tasks") == 1)
    children = hosts_of(scheduler.pid)
    assert children
    assert bench.owner("r1") is not None
    scheduler.send(signal.SIGTERM)
    assert scheduler.process.wait(20) == 0
    assert bench.owner("r1") is None
    assert (
        bench.one(
            "select count(*) from smithers.processes where stopped_at is null and"
            " kind = 'scheduler'"
        )
        == 0
    )
    until(partial(none_alive, children))
    bench.fleet.start("scheduler")
    bench.ends("r1", "finished")


def test_a_second_sigterm_does_not_wait_for_a_render(bench: Bench) -> None:
    bench.fleet.settings["SMITHERS_RENDER_TIMEOUT_SECONDS"] = "600"
    scheduler = bench.fleet.start("scheduler")
    bench.start("hung", HEAD + "    time.sleep(3600)\n")
    until(lambda: hosts_of(scheduler.pid))
    scheduler.send(signal.SIGTERM)
    # Two signals at once would count as one.
    until(lambda: '"draining"' in scheduler.log.read_text())
    assert scheduler.alive()
    scheduler.send(signal.SIGTERM)
    assert scheduler.process.wait(20) == 0, scheduler.log.read_text()
    assert bench.owner("hung") is None
    assert status(bench.conn, "hung") == "running"


def test_another_scheduler_goes_on_after_a_kill(bench: Bench) -> None:
    """Kill whichever scheduler there is, again and again, while runs go on."""
    for number in range(4):
        bench.start(f"r{number}", CHAIN, size=8)
    bench.fleet.start("scheduler")
    bench.fleet.start("scheduler")
    for _ in range(4):
        bench.progress()
        victim = bench.fleet.living("scheduler")[0]
        children = hosts_of(victim.pid)
        victim.kill()
        until(partial(none_alive, children))
        bench.fleet.start("scheduler")
    for number in range(4):
        bench.ends(f"r{number}", "finished", seconds=90)
        frames = bench.frames(f"r{number}")
        assert frames == list(range(1, len(frames) + 1))
    assert bench.one("select count(*) from smithers.attempts") == 32, "nothing ran twice"


def test_a_stopped_scheduler_is_fenced_and_begins_anew(bench: Bench) -> None:
    first = bench.fleet.start("scheduler")
    bench.start("r1", CHAIN, size=3)
    until(lambda: bench.one("select count(*) from smithers.ready_tasks") == 1)
    owner = bench.owner("r1")
    first.send(signal.SIGSTOP)
    bench.fleet.start("scheduler")
    bench.fleet.start("supervisor")
    bench.ends("r1", "finished", seconds=60)
    until(lambda: bench.one("select stopped_at from smithers.processes where id = %s", owner))
    first.send(signal.SIGCONT)
    until(
        lambda: (
            bench.one(
                "select count(*) from smithers.processes where kind = 'scheduler' and pid = %s"
                " and stopped_at is null",
                first.pid,
            )
            == 1
        )
    )
    assert first.alive()


def test_two_versions_advance_side_by_side(bench: Bench) -> None:
    bench.fleet.start("scheduler")
    bench.start("old", CHAIN, size=3)
    bench.start("new", CHAIN.replace("'t{n}'", "'u{n}'"), size=3)
    bench.ends("old", "finished")
    bench.ends("new", "finished")
    names = bench.conn.execute("select distinct left(node_id, 1) from smithers.nodes").fetchall()
    assert sorted(name for (name,) in names) == ["t", "u"]


@pytest.mark.parametrize(("ask", "expected"), [("pause", "paused"), ("cancel", "cancelled")])
def test_a_request_is_settled_when_nothing_is_in_flight(
    bench: Bench, ask: str, expected: str
) -> None:
    bench.fleet.start("scheduler")
    bench.start("r1", CHAIN, size=3)
    until(lambda: bench.one("select count(*) from smithers.ready_tasks") == 1)
    request: Callable[[Connection, str], Any] = getattr(operator, f"{ask}_run")
    request(bench.conn, "r1")
    until(lambda: status(bench.conn, "r1") == expected)
    assert bench.work() == 0
    if ask == "pause":
        operator.resume_run(bench.conn, "r1")
        bench.ends("r1", "finished")


def test_a_run_with_a_broken_bundle_fails_and_says_so(bench: Bench) -> None:
    bench.start("r1", ONE)
    bench.conn.execute("update smithers.sources set body = '\\x00'")
    factory.make_run(bench.conn, "r2")
    bench.fleet.start("scheduler")
    bench.ends("r1", "failed")
    bench.ends("r2", "failed")
    assert bench.error("r1")["code"] == "BUNDLE_CORRUPT"
    assert bench.error("r2")["code"] == "BUNDLE_UNKNOWN"


def test_three_schedulers_share_many_runs(bench: Bench) -> None:
    for _ in range(3):
        bench.fleet.start("scheduler")
    for number in range(30):
        bench.start(f"r{number:02}", CHAIN, size=4)
    for number in range(30):
        bench.ends(f"r{number:02}", "finished", seconds=120)
    assert bench.one("select count(*) from smithers.attempts") == 120
    wrong = bench.one(
        "select count(*) from (select run_id, max(frame_no) as top, count(*) as n"
        " from smithers.frames group by run_id) f where top <> n"
    )
    assert wrong == 0


def test_many_timers_due_at_once_fire_once_each_and_never_early(bench: Bench) -> None:
    for role in ("scheduler", "supervisor"):
        for _ in range(3):
            bench.fleet.start(role)
    for number in range(60):
        bench.start(f"r{number:02}", HEAD + "    return Sequence(Timer('nap', 2))\n")
    for number in range(60):
        bench.ends(f"r{number:02}", "finished")
    assert bench.one("select count(*) from smithers.events where type = 'timer-fired'") == 60
    assert bench.one("select min(fired_at - due_at) from smithers.timers") >= timedelta(0)
    assert bench.one("select max(fired_at - due_at) from smithers.timers") < timedelta(seconds=8)


def test_connections_that_die_cost_nothing(bench: Bench) -> None:
    scheduler = bench.fleet.start("scheduler")
    for number in range(3):
        bench.start(f"r{number}", CHAIN, size=8)
    for _ in range(8):
        bench.progress()
        bench.conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    for number in range(3):
        bench.ends(f"r{number}", "finished")
        frames = bench.frames(f"r{number}")
        assert frames == list(range(1, len(frames) + 1))
    assert bench.one("select count(*) from smithers.attempts") == 24
    assert scheduler.alive()


def test_a_renderer_that_is_killed_from_outside_costs_no_run(bench: Bench) -> None:
    scheduler = bench.fleet.start("scheduler")
    bench.start("r1", CHAIN, size=6)
    until(lambda: bench.work() == 1)
    for _ in range(3):
        for pid in hosts_of(scheduler.pid):
            os.kill(pid, signal.SIGKILL)
        bench.progress()
    bench.ends("r1", "finished")
