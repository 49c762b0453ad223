"""What a frame costs, counted in calls: it grows with the nodes and no faster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from types import FrameType

import pytest
from pydantic import BaseModel

from smithers.workflow import Ctx, Node, Parallel, Sequence, Workflow, workflow
from smithers.workflow.descriptor import Memo
from smithers.workflow.document import FrameDoc
from smithers.workflow.settle import settle
from smithers.workflow.snapshot import NodeRow, RunRow, Snapshot
from smithers.workflow.states import NodeKind, NodeState
from support.workflow_samples import task


class Size(BaseModel):
    n: int


@workflow(input=Size)
def wide(ctx: Ctx[Size]) -> Node:
    """Two wide stages, one after the other."""
    first = Parallel(*(task(f"a{i}") for i in range(ctx.input.n)))
    second = Parallel(*(task(f"b{i}") for i in range(ctx.input.n)))
    return Sequence(first, second)


@workflow(input=Size)
def long(ctx: Ctx[Size]) -> Node:
    """A chain, each task of which needs the one before."""
    tasks = [task("t0")]
    for i in range(1, 2 * ctx.input.n):
        tasks.append(task(f"t{i}", needs={"before": tasks[-1]}))
    return Sequence(*tasks)


def rows(n: int, done: int) -> tuple[NodeRow, ...]:
    names = [f"a{i}" for i in range(n)] + [f"b{i}" for i in range(n)]
    states = [NodeState.FINISHED if i < done else NodeState.PENDING for i in range(2 * n)]
    return tuple(
        NodeRow(name, 0, state, NodeKind.COMPUTE) for name, state in zip(names, states, strict=True)
    )


def calls(work: Callable[[], FrameDoc]) -> int:
    """Count the Python calls of some work."""
    count = 0

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def snapshot(name: str, n: int, nodes: tuple[NodeRow, ...] = ()) -> Snapshot:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    return Snapshot(now, RunRow("r1", name, {"n": n}), nodes)


@pytest.mark.parametrize("flow", [wide, long], ids=lambda flow: flow.name)
def test_a_first_frame_is_linear(flow: Workflow) -> None:
    small, large = (calls(partial(settle, flow, snapshot("w", n))) for n in (200, 800))
    assert large < 4.2 * small


def test_a_frame_of_a_kept_run_is_linear_and_describes_nothing_anew() -> None:
    counts: list[int] = []
    for n in (200, 800):
        memo = Memo()
        first = settle(wide, snapshot("w", n, rows(n, 0)), memo=memo)
        later = snapshot("w", n, rows(n, n // 2))
        work = settle(wide, later, memo=memo, previous=first.structure)
        assert work.to_json()["structure"] == {"base": None, "body": None}
        again = partial(settle, wide, later, memo=memo, previous=first.structure)
        counts.append(calls(again))
    assert counts[1] < 4.2 * counts[0]
    per_task = counts[1] / 1600
    assert per_task < 40, per_task


def test_a_join_of_wide_stages_names_few_nodes() -> None:
    doc = settle(wide, snapshot("w", 300))
    assert max(len(mount.upstream) for mount in doc.mounts) == 32
