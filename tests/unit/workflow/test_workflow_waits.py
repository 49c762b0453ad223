"""Approvals, answers, signals, timers, quotas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from smithers.workflow import (
    Approval,
    Branch,
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
    workflow,
)
from support.workflow_samples import Answer, Out, flow, task
from support.workflow_world import World


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


def test_a_loop_may_take_more_signals_than_a_frame_has_passes() -> None:
    @workflow(name="drain")
    def drain(ctx: Ctx[NoInput]) -> Node:
        wait = WaitForEvent("w")
        return Loop("l", wait, until=ctx.iteration("l") == 1499, max_iterations=2000)

    world = World(drain)
    for number in range(1500):
        world.signal("w", number)
    world.frame()
    assert world.status == "finished"
    assert all(signal["taken"] == ["w", number] for number, signal in enumerate(world.signals))


def test_a_static_that_needs_approval_waits_for_it() -> None:
    world = World(flow(Task("s", Out, value=Out(n=3), needs_approval=True)))
    world.frame()
    assert world.status == "waiting-approval"
    assert world.outputs == {}
    world.decide("s")
    world.frame()
    assert world.outputs["s", 0]["n"] == 3
    assert world.status == "finished"
