"""Loops, nested loops, and reading in their passes."""

from __future__ import annotations

import pytest

from smithers.workflow import (
    Ctx,
    Loop,
    Node,
    NoInput,
    Parallel,
    Sequence,
    Task,
    Workflow,
    workflow,
)
from support.workflow_samples import Out, flow, task
from support.workflow_world import World


def counting(passes: int, **options: object) -> Workflow:
    @workflow(name="loop")
    def loop(ctx: Ctx[NoInput]) -> Node:
        check = task("check")
        last = ctx.output_maybe(check)
        return Sequence(
            Loop("l", check, until=last and last.n >= passes, **options),  # type: ignore[arg-type]
            task("after"),
        )

    return loop


def test_a_loop_goes_on_until_its_condition_holds() -> None:
    world = World(counting(3))
    for n in range(1, 4):
        world.frame()
        assert world.ready() == [("check", n - 1)]
        assert world.state("after") == "pending"
        world.complete("check", n - 1, n=n)
    world.frame()
    assert world.state("l", 2) == "finished"
    assert world.ready() == [("after", 0)]
    assert [world.nodes["l", i].detail for i in range(3)] == [
        {"reason": "again"},
        {"reason": "again"},
        {"reason": "until"},
    ]


def test_an_exhausted_loop_ends_as_it_is() -> None:
    world = World(counting(9, max_iterations=2))
    for i in range(2):
        world.frame()
        world.complete("check", i, n=0)
    doc = world.frame()
    assert doc["exhausted"] == ["l"]
    assert world.ready() == [("after", 0)]


def test_an_exhausted_loop_fails_if_it_is_told_to() -> None:
    world = World(counting(9, max_iterations=1, on_max="fail"))
    world.frame()
    world.complete("check", n=0)
    world.frame()
    assert world.status == "failed"
    assert world.run["error"]["code"] == "LOOP_EXHAUSTED"


def test_a_finished_loop_stays_finished_when_its_condition_changes() -> None:
    @workflow(name="flip")
    def flip(ctx: Ctx[NoInput]) -> Node:
        a, after = task("a"), task("after")
        return Sequence(
            Loop("l", a, until=ctx.output_maybe(a) and not ctx.output_maybe(after)), after
        )

    world = World(flip)
    world.frame()
    world.complete("a")
    world.frame()
    world.complete("after")
    world.frame()
    assert world.status == "finished"
    assert ("l", 1) not in world.nodes


def test_the_condition_is_not_judged_before_the_pass_is_done() -> None:
    world = World(flow(Loop("l", task("a"), task("b"), until=True)))
    world.frame()
    world.complete("a")
    world.frame()
    assert world.state("l") == "pending"
    world.complete("b")
    world.frame()
    assert world.status == "finished"


def test_nested_loops_name_their_outer_passes() -> None:
    @workflow(name="nest")
    def nest(ctx: Ctx[NoInput]) -> Node:
        return Loop(
            "outer",
            Loop("mid", Loop("in", task("t"), until=ctx.iteration("in") == 1), until=True),
            until=ctx.iteration("outer") == 1,
        )

    world = World(nest, keep=False)
    for _ in range(4):
        world.frame()
        (key,) = world.ready()
        world.complete(*key)
    world.frame()
    assert world.status == "finished"
    assert list(world.outputs) == [
        ("t@@outer=0,mid=0", 0),
        ("t@@outer=0,mid=0", 1),
        ("t@@outer=1,mid=0", 0),
        ("t@@outer=1,mid=0", 1),
    ]
    assert {key for key in world.nodes if key[0].startswith("in")} == {
        ("in@@outer=0,mid=0", 0),
        ("in@@outer=0,mid=0", 1),
        ("in@@outer=1,mid=0", 0),
        ("in@@outer=1,mid=0", 1),
    }
    assert ("mid@@outer=1", 0) in world.nodes


def test_a_dependency_inside_a_loop_is_that_of_the_same_pass() -> None:
    @workflow(name="panel")
    def panel(ctx: Ctx[NoInput]) -> Node:
        voices = [task(f"p{i}") for i in range(3)]
        chair = task("chair", needs={v.id: v for v in voices})
        inner = Loop("in", Parallel(*voices, chair), until=ctx.iteration("in") == 2)
        return Loop("out", inner, until=ctx.iteration("out") == 2)

    world = World(panel)
    for _ in range(9):
        world.frame()
        ready = world.ready()
        assert [key[0][:2] for key in ready] == ["p0", "p1", "p2"]
        for key in ready:
            world.complete(*key)
        world.frame()
        (chair,) = world.ready()
        body = world.descriptors[world.nodes[chair].descriptor_hash or ""]
        assert {(n["node_id"], n["iteration"]) for n in body["needs"]} == set(ready)
        world.complete(*chair)
    world.frame()
    assert world.status == "finished"
    assert len(world.outputs) == 36


def test_a_dependency_on_a_node_in_a_loop_waits_for_the_loop() -> None:
    @workflow(name="outside")
    def outside(ctx: Ctx[NoInput]) -> Node:
        a = task("a")
        return Parallel(Loop("l", a, until=ctx.iteration("l") == 1), task("sum", needs={"last": a}))

    world = World(outside)
    world.frame()
    world.complete("a")
    world.frame()
    assert world.ready() == [("a", 1)]
    world.complete("a", 1)
    world.frame()
    assert world.ready() == [("sum", 0)]
    body = world.descriptors[world.nodes["sum", 0].descriptor_hash or ""]
    assert body["needs"][0]["iteration"] == 1


def test_a_loop_without_nodes_waits_instead_of_spinning() -> None:
    world = World(flow(Loop("l", None, until=False)))
    world.frame()
    assert world.run["error"]["code"] == "RUN_STUCK"
    assert "'l' has a pass without nodes" in world.run["error"]["message"]
    world = World(flow(Loop("l", None, until=True), task("a")))
    world.frame()
    assert world.ready() == [("a", 0)]


def test_a_loop_of_statics_settles_in_one_frame() -> None:
    @workflow(name="spin")
    def spin(ctx: Ctx[NoInput]) -> Node:
        s = Task("s", Out, value=Out(n=ctx.iteration("l")))
        return Sequence(Loop("l", s, until=ctx.iteration("l") == 3), task("end"))

    world = World(spin)
    world.frame()
    assert [world.outputs["s", i]["n"] for i in range(4)] == [0, 1, 2, 3]
    assert world.ready() == [("end", 0)]


def test_a_conditional_node_in_a_loop_is_read_in_its_pass_even_while_unmounted() -> None:
    seen: list[tuple[int, int | None]] = []

    @workflow(name="repair")
    def repair(ctx: Ctx[NoInput]) -> Node:
        check, fix = task("check"), task("fix")
        c, f = ctx.output_maybe(check), ctx.output_maybe(fix)
        seen.append((ctx.iteration("l"), f.n if f else None))
        return Loop("l", check, c and not c.ok and fix, until=c and c.ok)

    for keep in (True, False):
        world = World(repair, keep=keep)
        world.frame()
        world.complete("check", ok=False)
        world.frame()
        world.complete("fix", n=7)
        world.frame()
        world.claim("check", 1)
        seen.clear()
        world.frame()
        assert seen == [(1, None)]


def test_a_dependency_on_a_node_in_two_loops_waits_for_the_outer_one() -> None:
    @workflow(name="deep")
    def deep(ctx: Ctx[NoInput]) -> Node:
        t = task("t")
        outer = Loop("out", Loop("in", t, until=True), task("v"), until=True)
        return Parallel(outer, task("sum", needs={"t": t}))

    world = World(deep)
    world.frame()
    world.complete("t@@out=0")
    world.frame()
    assert world.ready() == [("v", 0)]
    world.complete("v")
    world.frame()
    assert world.ready() == [("sum", 0)]


@pytest.mark.parametrize("by", ["output", "pass"])
def test_passes_are_found_again_when_no_frame_tells_where_nodes_stand(by: str) -> None:
    @workflow(name="lost")
    def lost(ctx: Ctx[NoInput]) -> Node:
        t, late = task("t"), task("late")
        last = ctx.iteration("in") == 1 if by == "pass" else ctx.output_maybe(t) is not None
        inner = Loop("in", t, last and late, task("u"), until=False, max_iterations=2)
        return Loop("out", inner, until=False)

    world = World(lost, keep=False)
    while ("t@@out=1", 1) not in world.outputs:
        world.frame()
        (key,) = world.ready()
        world.complete(*key)
    world.frames.clear()
    world.frame()
    assert world.ready() == [("late@@out=1", 1)]
