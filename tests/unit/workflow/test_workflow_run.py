"""Whole runs of small workflows, by the rows that frames commit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Unpack, cast

import pytest
from pydantic import BaseModel

from smithers.workflow import (
    Approval,
    Branch,
    Child,
    Ctx,
    Event,
    HumanTask,
    Loop,
    Node,
    NoInput,
    Parallel,
    Sequence,
    Task,
    Timer,
    WaitForEvent,
    Workflow,
    workflow,
)
from smithers.workflow.errors import SmithersError
from smithers.workflow.tasks import TaskOptions
from support.workflow_world import World


class Out(BaseModel):
    n: int = 0
    ok: bool = True


class Plan(BaseModel):
    files: list[str]


class Answer(BaseModel):
    text: str


def work(**_: object) -> Out:
    raise NotImplementedError


def other(n: int) -> Out:
    raise NotImplementedError


def planning() -> Plan:
    raise NotImplementedError


def task(name: str, **options: Unpack[TaskOptions]) -> Task[Out]:
    return Task(name, Out, run=work, **options)


def flow(*children: Child) -> Workflow:
    @workflow(name="flow")
    def flow(ctx: Ctx[NoInput]) -> Node:
        return Sequence(*children)

    return flow


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


# ── stuck runs ──


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


# ── loops ──


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


# ── waits ──


def test_an_approval_opens_once_and_its_decision_goes_on() -> None:
    world = World(flow(Approval("ship", title="Ship?"), task("b")))
    doc = world.frame()
    assert doc["approvals"][0]["title"] == "Ship?"
    assert world.status == "waiting-approval"
    assert doc["blocked"][0]["command"] == "smithers approve r1 --node ship --iteration 0"
    assert world.frame()["approvals"] == []
    world.decide("ship")
    world.frame()
    assert world.ready() == [("b", 0)]


def test_a_denied_approval_fails_the_run() -> None:
    world = World(flow(Approval("ship"), task("b")))
    world.frame()
    world.decide("ship", approved=False, note="no")
    world.frame()
    assert world.status == "failed"
    assert world.run["error"]["code"] == "APPROVAL_DENIED"
    assert "denied by ann: no" in world.run["error"]["message"]
    world.resume()
    world.frame()
    assert world.status == "waiting-approval"


def test_a_denial_that_is_tolerated_can_be_read() -> None:
    @workflow(name="ask")
    def ask(ctx: Ctx[NoInput]) -> Node:
        gate = Approval("gate", continue_on_fail=True)
        decision = ctx.output_maybe(gate)
        return Sequence(
            gate, decision and Branch(decision.approved, task("yes"), task("no")), task("end")
        )

    world = World(ask)
    world.frame()
    world.decide("gate", approved=False)
    world.frame()
    assert world.ready() == [("no", 0)]


def test_an_approval_expires() -> None:
    world = World(flow(Approval("ship", timeout=60)))
    world.frame()
    world.pass_time(61)
    world.frame()
    assert world.run["error"]["code"] == "WAIT_EXPIRED"


def test_a_task_that_needs_approval_asks_before_it_may_start() -> None:
    world = World(flow(task("a", needs_approval="Really?"), task("b")))
    doc = world.frame()
    assert doc["approvals"][0]["title"] == "Really?"
    assert world.state("a") == "waiting-approval"
    assert world.status == "waiting-approval"
    world.decide("a")
    world.frame()
    assert world.ready() == [("a", 0)]
    world.fail("a", retry_in=0)
    world.pass_time(1)
    assert world.frame()["approvals"] == []
    assert world.ready() == [("a", 0)]


def test_a_task_that_is_denied_fails_without_an_attempt() -> None:
    world = World(flow(task("a", needs_approval=True)))
    world.frame()
    world.decide("a", approved=False)
    world.frame()
    assert world.run["error"]["code"] == "APPROVAL_DENIED"
    assert world.started == []


def test_approvals_of_many_nodes_and_passes_are_distinct() -> None:
    @workflow(name="gates")
    def gates(ctx: Ctx[NoInput]) -> Node:
        inside = Parallel(*(Approval(f"g{i}") for i in range(8)))
        return Loop("l", inside, until=ctx.iteration("l") == 2)

    world = World(gates)
    for k in range(3):
        world.frame()
        for i in reversed(range(8)):
            world.decide(f"g{i}", k)
            world.frame()
    assert world.status == "finished"
    assert len(world.approvals) == 24


def test_a_human_answer_is_an_output() -> None:
    seen: list[str | None] = []

    @workflow(name="human")
    def human(ctx: Ctx[NoInput]) -> Node:
        ask = HumanTask("ask", Answer, prompt="Why?")
        answer = ctx.output_maybe(ask)
        seen.append(answer.text if answer else None)
        return ask

    world = World(human)
    doc = world.frame()
    assert doc["human"][0]["schema"]["required"] == ["text"]
    assert world.status == "waiting-approval"
    world.answer("ask", response={"text": "because"})
    world.frame()
    assert world.status == "finished"
    assert seen[-1] == "because"


def test_an_answer_that_does_not_fit_fails_its_node() -> None:
    world = World(flow(HumanTask("ask", Answer, prompt="Why?")))
    world.frame()
    world.answer("ask", response={"wrong": 1})
    world.frame()
    assert world.run["error"]["code"] == "ANSWER_INVALID"
    assert "text: Field required" in world.run["error"]["message"]


def test_signals_are_taken_in_order_each_once() -> None:
    waits = [WaitForEvent(f"w{i}", name="go") for i in range(3)]
    world = World(flow(Parallel(*waits)))
    first = world.signal("go", 1)
    world.frame()
    assert world.status == "waiting-event"
    assert world.state("w0") == "finished"
    second = world.signal("go", 2)
    world.signal("other", 3)
    world.signal("go", 4)
    doc = world.frame()
    assert [(each["node_id"], each["signal_seq"]) for each in doc["consume"]] == [
        ("w1", second),
        ("w2", second + 2),
    ]
    assert first < second
    assert world.status == "finished"
    assert [s["payload"] for s in world.signals if not s["taken"]] == [3]


def test_a_signal_can_be_read_and_one_that_does_not_fit_stays() -> None:
    seen: list[object] = []

    @workflow(name="events")
    def events(ctx: Ctx[NoInput]) -> Node:
        typed, loose = WaitForEvent("typed", Answer), WaitForEvent("loose")
        seen.append((ctx.output_maybe(typed), ctx.output_maybe(loose)))
        return Parallel(typed, loose)

    world = World(events)
    world.frame()
    wrong = world.signal("typed", {"no": 1})
    doc = world.frame()
    assert f"signal {wrong} doesn't fit: text: Field required" in doc["blocked"][0]["message"]
    world.signal("typed", {"text": "x"})
    world.signal("loose", [1, 2])
    world.frame()
    assert world.status == "finished"
    assert seen[-1] == (Answer(text="x"), Event(payload=[1, 2]))


def test_a_wait_for_an_event_expires_and_a_signal_beats_the_clock() -> None:
    world = World(flow(WaitForEvent("w", timeout=10)))
    world.frame()
    world.pass_time(9)
    world.frame()
    assert world.status == "waiting-event"
    world.pass_time(2)
    world.frame()
    assert world.run["error"]["code"] == "WAIT_EXPIRED"
    world = World(flow(WaitForEvent("w", timeout=10)))
    world.frame()
    world.signal("w")
    world.pass_time(20)
    world.frame()
    assert world.status == "finished"


def test_a_timer_starts_when_its_turn_comes_and_fires_once() -> None:
    world = World(flow(task("a"), Timer("t", timedelta(minutes=1)), task("b")))
    world.frame()
    world.pass_time(100)
    world.complete("a")
    doc = world.frame()
    assert doc["timers"] == [{"node_id": "t", "iteration": 0, "seconds": 60.0, "until": None}]
    assert world.status == "waiting-timer"
    world.pass_time(59)
    world.frame()
    assert world.status == "waiting-timer"
    world.pass_time(1)
    world.frame()
    assert world.ready() == [("b", 0)]


def test_a_timer_until_a_time() -> None:
    until = datetime(2030, 1, 1, 0, 5, tzinfo=UTC)
    world = World(flow(Timer("t", until=until)))
    world.frame()
    world.pass_time(300)
    world.frame()
    assert world.status == "finished"


def test_the_status_names_the_first_of_several_waits_and_blocked_lists_all() -> None:
    world = World(flow(Parallel(Timer("t", 5), WaitForEvent("e"), Approval("a"), task("x"))))
    doc = world.frame()
    assert world.status == "running"
    assert [each["reason"] for each in doc["blocked"]] == ["timer", "event", "approval"]
    world.complete("x")
    world.frame()
    assert world.status == "waiting-approval"
    world.decide("a")
    world.frame()
    assert world.status == "waiting-event"
    world.signal("e")
    world.frame()
    assert world.status == "waiting-timer"


def test_a_parked_quota_waits_until_its_reset() -> None:
    world = World(flow(task("a")))
    world.frame()
    world.claim("a")
    row = world.nodes["a", 0]
    row.in_progress, row.state = False, type(row.state).WAITING_QUOTA
    row.due_at = world.now + timedelta(seconds=30)
    world.frame()
    assert world.status == "waiting-quota"
    world.pass_time(31)
    world.frame()
    assert world.ready() == [("a", 0)]


# ── requests, unmounting ──


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


# ── refusals ──


def refuse(*children: Child) -> SmithersError:
    with pytest.raises(SmithersError) as caught:
        World(flow(*children)).frame()
    return caught.value


def test_duplicate_ids_are_refused_with_both_places() -> None:
    error = refuse(task("é"), Parallel(None, task("e\u0301")))
    assert error.code == "DUPLICATE_ID"
    first, second = cast("list[str]", error.details["places"])
    assert "Task at 0.0 (" in first
    assert "Task at 0.1.1 (" in second
    assert "test_workflow_run.py:" in first


def test_a_loop_and_a_task_may_not_share_an_id() -> None:
    assert refuse(task("a"), Loop("a", task("b"), until=True)).code == "DUPLICATE_ID"


def test_functions_that_no_worker_can_find_are_refused() -> None:
    def local() -> Out:
        return Out()

    for run in (local, lambda: local(), partial(local)):  # noqa: PLW0108
        error = refuse(Task("a", Out, run=run))
        assert error.code == "TASK_NOT_IMPORTABLE"
        assert "'a'" in error.message


def test_a_partial_is_named_with_what_it_binds() -> None:
    world = World(flow(Task("a", Out, run=partial(other, n=3))))
    world.frame()
    (body,) = world.descriptors.values()
    assert body["run"].endswith(":other")
    assert body["partial"] == {"args": [], "kwargs": {"n": 3}}


def test_models_that_no_worker_can_find_are_refused() -> None:
    class Local(BaseModel):
        x: int

    def local() -> Local:
        return Local(x=1)

    assert refuse(Task("a", Local, value=local())).code == "INVALID_MODEL"


def test_ids_that_change_from_render_to_render_are_refused() -> None:
    counter = iter(range(100))

    @workflow(name="random")
    def random(ctx: Ctx[NoInput]) -> Node:
        return task(f"t{next(counter)}")

    with pytest.raises(SmithersError, match="'t0', 't1' differ") as caught:
        World(random).frame()
    assert caught.value.code == "RENDER_UNSETTLED"


def test_a_loop_that_never_settles_is_refused() -> None:
    s = Task("s", Out, value=Out())
    error = refuse(Loop("l", s, until=False, max_iterations=10**6))
    assert error.code == "RENDER_UNSETTLED"


def test_a_render_that_raises_tells_where() -> None:
    @workflow(name="broken")
    def broken(ctx: Ctx[NoInput]) -> Node:
        raise ZeroDivisionError("oh")

    with pytest.raises(SmithersError) as caught:
        World(broken).frame()
    assert caught.value.code == "RENDER_FAILED"
    assert "ZeroDivisionError: oh" in caught.value.message
    assert "test_workflow_run.py" in str(caught.value.details["traceback"])


def test_an_empty_workflow_is_finished_at_once() -> None:
    @workflow(name="none")
    def none(ctx: Ctx[NoInput]) -> None:
        return None

    world = World(none)
    world.frame()
    assert world.status == "finished"


def test_trees_that_are_too_deep_are_refused() -> None:
    node: Node = task("a")
    for _ in range(150):
        node = Sequence(node)
    assert refuse(node).code == "INVALID_NODE"
