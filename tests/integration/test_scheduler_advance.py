"""One step of one run against a real database, with facts that land at every point of it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel

from smithers.scheduler.advance import OwnedRun, Step, advance
from smithers.scheduler.shapes import Shapes
from smithers.sql import operator, scheduler, worker
from smithers.sql.calls import Connection
from smithers.sql.errors import Fenced
from smithers.sql.rows import ClaimedTask, Json
from smithers.workflow import (
    Approval,
    Ctx,
    Node,
    Parallel,
    Sequence,
    Task,
    WaitForEvent,
    workflow,
)
from smithers.workflow.settle import settle
from smithers.workflow.snapshot import Snapshot
from smithers.workflow.states import RunStatus
from support import factory
from support.runs import approve_open, connect, signal, status

HOUR = timedelta(hours=1)


class Out(BaseModel):
    n: int


def body(n: int = 0) -> Out:
    return Out(n=n)


@workflow()
def mixed(_: Ctx[Any]) -> Node:
    """Two tasks side by side, a person, an event, a last task."""
    return Sequence(
        Parallel(
            Task("a", Out, run=body),
            Task("b", Out, run=body),
            Approval("ok", title="?"),
            WaitForEvent("go"),
        ),
        Task("last", Out, run=body),
    )


@workflow()
def chain(_: Ctx[Any]) -> Node:
    return Sequence(*(Task(f"t{n}", Out, run=body) for n in range(5)))


class Local:
    """Renders in this process; `between` is called after the load and again before the commit."""

    def __init__(self, flow: Any) -> None:
        self.flow = flow
        self.before: Callable[[], object] = lambda: None
        self.after: Callable[[], object] = lambda: None

    def render(self, snapshot: Json, connection: Connection) -> Json:
        self.before()
        bodies = scheduler.load_frames(connection, snapshot["run"]["run_id"])
        frames = [
            {"frame_no": b.frame_no, "base_frame_no": b.base_frame_no, "body": b.body}
            for b in bodies
        ]
        frame = settle(self.flow, Snapshot.from_json({**snapshot, "frames": frames})).to_json()
        self.after()
        return frame


class Lab:
    """A run, its scheduler and a worker, all of them this test."""

    def __init__(self, dsn: str, flow: Any = mixed) -> None:
        self.conn = connect(dsn)
        self.other = connect(dsn)
        self.renderer = Local(flow)
        self.shapes = Shapes()
        self.scheduler = factory.register(self.conn, "scheduler", lease=HOUR)
        self.worker = factory.register(self.conn, "worker", lease=HOUR)
        factory.make_run(self.conn, "r1", workflow=flow.name)

    def take(self) -> OwnedRun | None:
        taken = scheduler.take_runs(self.conn, self.scheduler, uuid4(), limit=10, resume_limit=3)
        if not taken:
            return None
        (run,) = taken
        return OwnedRun(
            run.run_id, run.source_hash, self.scheduler, run.epoch, run.claim_id, run.stopping
        )

    def step(self, run: OwnedRun, **more: Any) -> Step:
        return advance(self.conn, run, self.renderer, self.shapes, **more)

    def settle(self) -> None:
        """Go on until nothing is dirty."""
        self.renderer.before = self.renderer.after = lambda: None
        for _ in range(20):
            run = self.take()
            if run is None:
                return
            self.step(run)
        raise AssertionError("the run never settles")

    def claim(self, limit: int = 10) -> list[ClaimedTask]:
        return factory.claim(self.other, self.worker, limit=limit, lease=HOUR)

    def complete(self, *tasks: ClaimedTask) -> list[bool]:
        return worker.complete_attempts(self.other, [completion(task) for task in tasks])

    def states(self) -> dict[str, str]:
        rows = self.other.execute("select node_id, state from smithers.nodes").fetchall()
        return {str(node_id): str(state) for node_id, state in rows}

    def events(self, kind: str) -> int:
        row = self.other.execute(
            "select count(*) from smithers.events where type = %s", [kind]
        ).fetchone()
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        self.conn.close()
        self.other.close()


def completion(task: ClaimedTask) -> Json:
    return {
        "run_id": task.run_id,
        "node_id": task.node_id,
        "iteration": task.iteration,
        "attempt": task.attempt,
        "claim_id": str(task.claim_id),
        "name": task.descriptor["output"]["name"],
        "shape": task.descriptor["output"]["shape"],
        "output": {"n": 1},
    }


@pytest.fixture
def lab(database: str) -> Generator[Lab, None, None]:
    lab = Lab(database)
    yield lab
    lab.close()


@pytest.fixture
def chained(database: str) -> Generator[Lab, None, None]:
    lab = Lab(database, chain)
    yield lab
    lab.close()


FACTS = ("approval", "signal", "completion", "cancel", "pause")
POINTS = ("before the load", "after the load", "before the commit", "after the commit")


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_is_never_lost_and_never_applied_twice(lab: Lab, fact: str, point: str) -> None:
    lab.settle()
    first, second = sorted(lab.claim(), key=lambda task: task.node_id)
    actions: dict[str, Callable[[], object]] = {
        "approval": lambda: approve_open(lab.other),
        "signal": lambda: signal(lab.other, "r1", "go"),
        "completion": lambda: lab.complete(second),
        "cancel": lambda: operator.cancel_run(lab.other, "r1"),
        "pause": lambda: operator.pause_run(lab.other, "r1"),
    }
    act = actions[fact]
    lab.complete(first)  # what makes the run dirty: the step under test sees at least this
    run = lab.take()
    assert run is not None
    if point == "before the load":
        act()
    elif point == "after the load":
        lab.renderer.before = act
    elif point == "before the commit":
        lab.renderer.after = act
    lab.step(run)
    if point == "after the commit":
        act()
    lab.settle()
    states = lab.states()
    assert states["a"] == "finished"
    if fact in ("cancel", "pause"):
        assert status(lab.other, "r1") == "running", "an attempt is in flight"
        lab.complete(second)
        lab.settle()
        assert status(lab.other, "r1") == {"cancel": "cancelled", "pause": "paused"}[fact]
        assert not lab.claim()
        return
    assert states[{"approval": "ok", "signal": "go", "completion": "b"}[fact]] == "finished"
    for name in {"approval", "signal", "completion"} - {fact}:
        actions[name]()
    ends_once(lab)


def ends_once(lab: Lab) -> None:
    """Everything that the last task waits for is there: it runs, once, and ends the run."""
    lab.settle()
    (last,) = lab.claim()
    assert last.node_id == "last"
    lab.complete(last)
    lab.settle()
    assert status(lab.other, "r1") == "finished"
    assert lab.events("attempt-finished") == 3
    assert lab.events("node-ready") == 2
    assert lab.events("approval-decided") == 1
    row = lab.other.execute("select count(*), count(consumed_seq) from smithers.signals").fetchone()
    assert row == (1, 1)


def test_a_decision_to_end_does_not_outrun_a_fact(chained: Lab) -> None:
    """The frame that would finish the run commits without its end when a fact came meanwhile."""
    for _ in range(5):
        chained.settle()
        (task,) = chained.claim()
        chained.complete(task)
    run = chained.take()
    assert run is not None
    chained.renderer.after = lambda: signal(chained.other, "r1", "late")
    step = chained.step(run)
    assert (step.status, step.dirty) == (RunStatus.RUNNING, True)
    chained.settle()
    assert status(chained.other, "r1") == "finished"


def test_a_step_of_a_run_that_was_taken_is_refused(lab: Lab) -> None:
    run = lab.take()
    assert run is not None

    def steal() -> None:
        lab.other.execute(
            "update smithers.processes set lease_until = smithers.now() - '1 s'::interval"
        )
        thief = factory.register(lab.other, "scheduler", lease=HOUR)
        factory.take(lab.other, thief, "r1")

    lab.renderer.after = steal
    with pytest.raises(Fenced):
        lab.step(run)
    assert lab.states() == {}


def test_a_fused_step_is_one_commit_and_one_frame(chained: Lab) -> None:
    claim = {
        "owner": chained.worker,
        "queues": ["default"],
        "limit": 1,
        "free": 1,
        "lease": 3600.0,
    }
    run = chained.take()
    assert run is not None
    step = chained.step(run, claim={**claim, "claim_id": str(uuid4())})
    steps = 1
    while step.claimed:
        (task,) = step.claimed
        item = {
            **{name: task[name] for name in ("run_id", "node_id", "iteration", "attempt")},
            "claim_id": task["claim_id"],
            "name": task["descriptor"]["output"]["name"],
            "shape": task["descriptor"]["output"]["shape"],
            "output": {"n": steps},
        }
        fused = {**claim, "claim_id": str(uuid4())}
        step = chained.step(run, completions=[item], claim=fused)
        steps += 1
    assert step.status is RunStatus.FINISHED
    assert step.frame_no == steps == 6
    assert set(chained.states().values()) == {"finished"}
    rows = chained.other.execute("select count(distinct seq), max(seq) from smithers.events")
    assert (
        rows.fetchone()
        == chained.other.execute(
            "select count(*), next_event_seq - 1 from smithers.events, smithers.run_state"
            " group by next_event_seq"
        ).fetchone()
    )


def test_a_fused_completion_that_is_stale_commits_nothing(chained: Lab) -> None:
    run = chained.take()
    assert run is not None
    chained.step(run)
    (task,) = chained.claim()
    item = {**completion(task), "claim_id": str(uuid4())}
    with pytest.raises(Fenced):
        chained.step(run, completions=[item])
    assert chained.states()["t0"] == "ready"
