"""Pause, cancel, and what leaves the tree."""

from __future__ import annotations

import pytest

from smithers.workflow import (
    Approval,
    Ctx,
    Node,
    NoInput,
    Parallel,
    Workflow,
    workflow,
)
from support.workflow_samples import flow, task
from support.workflow_world import World


@pytest.mark.parametrize(
    ("request_name", "end"),
    [("pause_requested_at", "paused"), ("cancel_requested_at", "cancelled")],
)
def test_a_stop_request_makes_nothing_ready(request_name: str, end: str) -> None:
    world = World(flow(Parallel(task("a"), task("b")), task("c")))
    world.frame()
    world.claim("a")
    world.run[request_name] = "2030-01-01T00:00:00+00:00"
    doc = world.frame()
    assert doc["moves"] == doc["ready"] == doc["mount"] == []
    assert world.status == "running"
    world.complete("a")
    world.frame()
    assert world.status == end


def conditional(*, wait: bool) -> Workflow:
    @workflow(name="cond")
    def cond(ctx: Ctx[NoInput]) -> Node:
        a, b = task("a"), task("b")
        extra = Approval("x") if wait else task("x")
        gone = ctx.output_maybe(a) is not None and ctx.output_maybe(b) is None
        return Parallel(a, b, not gone and extra)

    return cond


@pytest.mark.parametrize("wait", [True, False])
def test_what_is_unmounted_is_cancelled_and_comes_back(wait: bool) -> None:
    world = World(conditional(wait=wait))
    world.frame()
    world.complete("a")
    world.frame()
    assert world.state("x") == "cancelled"
    world.complete("b")
    world.frame()
    assert world.state("x") == ("waiting-approval" if wait else "ready")


def test_an_unmounted_attempt_in_progress_is_left_alone_and_holds_the_run() -> None:
    @workflow(name="drop")
    def drop(ctx: Ctx[NoInput]) -> Node:
        a = task("a")
        return Parallel(a, not ctx.output_maybe(a) and task("x"))

    world = World(drop)
    world.frame()
    world.claim("x")
    world.complete("a")
    world.frame()
    assert world.state("x") == "ready"
    assert world.status == "running"
    world.complete("x")
    world.frame()
    assert world.status == "finished"
