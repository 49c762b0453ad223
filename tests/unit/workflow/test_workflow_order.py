"""Who runs when: sequences, caps, failures, retries, dependencies."""

from __future__ import annotations

from smithers.workflow import (
    Ctx,
    Node,
    NoInput,
    Parallel,
    Sequence,
    Task,
    workflow,
)
from support.workflow_samples import Out, Plan, flow, planning, task
from support.workflow_world import World


def test_a_sequence_runs_one_after_another() -> None:
    world = World(flow(task("a"), task("b")))
    world.frame()
    assert world.states() == {("a", 0): "ready", ("b", 0): "pending"}
    assert world.status == "running"
    world.claim("a")
    world.frame()
    assert world.ready() == []
    world.complete("a", n=1)
    world.frame()
    world.complete("b", n=2)
    world.frame()
    assert world.status == "finished"


def test_an_unchanged_tree_stores_no_body() -> None:
    world = World(flow(task("a"), task("b")))
    assert world.frame()["structure"]["body"] is not None
    world.claim("a")
    assert world.frame()["structure"] == {"base": None, "body": None}


def test_a_tree_grows_with_outputs() -> None:
    @workflow(name="grow")
    def grow(ctx: Ctx[NoInput]) -> Node:
        plan = Task("plan", Plan, run=planning)
        p = ctx.output_maybe(plan)
        return Sequence(
            plan,
            p and Parallel(*(task(f"edit:{f}") for f in p.files), max_concurrency=2),
            task("merge", depends_on="plan"),
        )

    world = World(grow)
    world.frame()
    world.complete("plan", files=["x", "y", "z"])
    world.frame()
    assert world.ready() == [("edit:x", 0), ("edit:y", 0)]
    world.complete("edit:y")
    world.frame()
    assert world.ready() == [("edit:x", 0), ("edit:z", 0)]
    world.complete("edit:x")
    world.frame()
    assert world.state("merge") == "pending"
    world.complete("edit:z")
    world.frame()
    assert world.nodes["merge", 0].upstream == [
        ["plan", 0],
        ["edit:x", 0],
        ["edit:y", 0],
        ["edit:z", 0],
    ]
    world.complete("merge")
    world.frame()
    assert world.status == "finished"


def test_the_run_cap_counts_what_is_ready_and_in_progress() -> None:
    world = World(flow(Parallel(*(task(f"t{i}") for i in range(5)))), config={"max_concurrency": 2})
    world.frame()
    assert len(world.ready()) == 2
    world.claim("t0")
    world.frame()
    assert len(world.ready()) == 1
    world.complete("t0")
    world.frame()
    assert world.ready() == [("t1", 0), ("t2", 0)]


def test_caps_of_nested_groups_all_hold() -> None:
    inner = Parallel(*(task(f"i{i}") for i in range(4)), max_concurrency=1)
    world = World(flow(Parallel(inner, task("a"), task("b"), task("c"), max_concurrency=3)))
    world.frame()
    assert world.ready() == [("i0", 0), ("a", 0), ("b", 0)]


def test_higher_priority_goes_first() -> None:
    tasks = (task("low"), task("high", priority=5), task("middle", priority=1))
    world = World(flow(Parallel(*tasks)), config={"max_concurrency": 2})
    doc = world.frame()
    assert [each["node_id"] for each in doc["ready"]] == ["high", "middle"]


def test_a_static_finishes_in_its_frame() -> None:
    world = World(flow(Task("s", Out, value=Out(n=7)), task("b")))
    doc = world.frame()
    assert world.outputs["s", 0] == {"n": 7, "ok": True}
    assert doc["status"] == "running"
    assert world.ready() == [("b", 0)]


def test_a_skipped_task_is_done_and_has_no_output() -> None:
    seen: list[object] = []

    @workflow(name="skip")
    def skip(ctx: Ctx[NoInput]) -> Node:
        a = task("a", skip_if=True)
        seen.append(ctx.output_maybe(a))
        return Sequence(a, task("b", needs={"x": a}))

    world = World(skip)
    world.frame()
    assert world.states() == {("a", 0): "skipped", ("b", 0): "ready"}
    assert set(seen) == {None}


def test_a_failure_lets_what_is_in_flight_end_and_starts_nothing() -> None:
    world = World(flow(Parallel(task("a"), task("b"), task("c")), task("d")))
    world.frame()
    world.claim("b")
    world.fail("a")
    doc = world.frame()
    assert world.status == "running"
    assert world.states() == {
        ("a", 0): "failed",
        ("b", 0): "ready",
        ("c", 0): "pending",
        ("d", 0): "pending",
    }
    assert doc["error"]["details"]["node_id"] == "a"
    world.complete("b")
    world.frame()
    assert world.status == "failed"
    assert world.run["error"]["code"] == "BOOM"
    assert "'a' (iteration 0) failed: a broke" in world.run["error"]["message"]


def test_the_stored_error_stays_the_first() -> None:
    world = World(flow(Parallel(task("a"), task("b"))))
    world.frame()
    world.claim("a")
    world.fail("b")
    world.run["error"] = world.frame()["error"]
    world.fail("a")
    world.frame()
    assert world.run["error"]["details"]["node_id"] == "b"


def test_a_tolerated_failure_goes_on() -> None:
    world = World(flow(task("a", continue_on_fail=True), task("b", depends_on=["a"])))
    world.frame()
    world.fail("a")
    world.frame()
    world.complete("b")
    doc = world.frame()
    assert world.status == "finished"
    assert doc["tolerated"] == [{"node_id": "a", "iteration": 0}]


def test_a_resumed_run_goes_on_where_it_failed() -> None:
    world = World(flow(task("a"), task("b")))
    world.frame()
    world.complete("a")
    world.frame()
    world.fail("b")
    world.frame()
    assert world.status == "failed"
    world.resume()
    world.frame()
    assert world.states() == {("a", 0): "finished", ("b", 0): "ready"}


def test_a_retry_waits_for_its_due_time_and_the_run_stays_running() -> None:
    world = World(flow(task("a")))
    world.frame()
    world.fail("a", retry_in=60)
    doc = world.frame()
    assert world.status == "running"
    assert world.ready() == []
    assert [each["reason"] for each in doc["blocked"]] == ["retry"]
    world.pass_time(60)
    world.frame()
    assert world.ready() == [("a", 0)]


def test_a_key_with_an_abandoned_attempt_is_claimed_alone() -> None:
    world = World(flow(task("a")))
    assert world.frame()["ready"][0]["alone"] is False
    world.claim("a")
    world.abandon("a")
    assert world.frame()["ready"][0]["alone"] is True


def test_needs_wait_across_the_tree_and_are_named_in_the_descriptor() -> None:
    a, b = task("a"), task("b")
    world = World(flow(Parallel(task("c", needs={"x": a, "y": b}), Sequence(b, a))))
    world.frame()
    assert world.ready() == [("b", 0)]
    for name in "ba":
        world.complete(name)
        world.frame()
    assert world.ready() == [("c", 0)]
    body = world.descriptors[world.nodes["c", 0].descriptor_hash or ""]
    assert [each["param"] for each in body["needs"]] == ["x", "y"]
    assert body["needs"][0]["node_id"] == "a"
