"""Runs in which nothing can run."""

from __future__ import annotations

import pytest

from smithers.workflow import (
    Approval,
    Ctx,
    Node,
    NoInput,
    Parallel,
    Timer,
    WaitForEvent,
    workflow,
)
from support.workflow_samples import flow, task
from support.workflow_world import World


def test_a_missing_dependency_is_found_in_one_frame_and_named() -> None:
    world = World(flow(task("a", depends_on="ghost"), task("b")))
    world.frame()
    assert world.status == "failed"
    error = world.run["error"]
    assert error["code"] == "DEPENDENCY_MISSING"
    assert "'a' waits for 'ghost', which isn't mounted" in error["message"]
    assert error["details"]["behind"] == [{"node_id": "b", "iteration": 0}]


def test_a_missing_dependency_waits_while_anything_else_can_happen() -> None:
    @workflow(name="late")
    def late(ctx: Ctx[NoInput]) -> Node:
        first = task("first")
        return Parallel(
            task("a", depends_on="late"), first, ctx.output_maybe(first) and task("late")
        )

    world = World(late)
    world.frame()
    world.claim("first")
    world.frame()
    assert world.status == "running"
    world.complete("first")
    world.frame()
    world.complete("late")
    world.frame()
    assert world.ready() == [("a", 0)]


@pytest.mark.parametrize("kind", ["timer", "approval", "event", "retry"])
def test_a_deadlock_is_never_called_while_something_is_awaited(kind: str) -> None:
    waits: dict[str, Node] = {
        "timer": Timer("w", 5),
        "approval": Approval("w"),
        "event": WaitForEvent("w"),
        "retry": task("w"),
    }
    world = World(flow(Parallel(task("a", depends_on="ghost"), waits[kind])))
    world.frame()
    if kind == "retry":
        world.fail("w", retry_in=5)
        world.frame()
    assert world.status == ("running" if kind == "retry" else f"waiting-{kind}")


def test_nodes_that_wait_for_each_other_are_named() -> None:
    world = World(flow(Parallel(task("a", depends_on="b"), task("b", depends_on="a"))))
    world.frame()
    assert world.run["error"]["code"] == "RUN_STUCK"
    blocked = world.run["error"]["details"]["blocked"]
    assert [(each["node_id"], each["waits_for"]) for each in blocked] == [
        ("a", ["b"]),
        ("b", ["a"]),
    ]


def test_a_sequence_that_needs_what_comes_later_is_stuck() -> None:
    world = World(flow(task("a", depends_on="b"), task("b")))
    world.frame()
    assert world.run["error"]["code"] == "RUN_STUCK"
