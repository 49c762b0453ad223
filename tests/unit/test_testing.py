"""Workflows run by smithers.testing, as their authors would."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from textwrap import dedent
from typing import Any

import pytest
from pydantic import BaseModel

from smithers.testing import AttemptError, HarnessError, TestRun, run_workflow, start_workflow
from smithers.workflow import (
    AgentSpec,
    Approval,
    Ctx,
    Decision,
    Event,
    HumanTask,
    Loop,
    Node,
    NoInput,
    Parallel,
    RetryPolicy,
    Sequence,
    Task,
    Timer,
    WaitForEvent,
    Workflow,
    workflow,
)
from smithers.workflow.errors import AuthorError, InputError, RenderError
from smithers.workflow.states import NodeState

AGENT = AgentSpec("command", "scripted", {"argv": ["false"]})


class Ticket(BaseModel):
    title: str


class Plan(BaseModel):
    files: list[str]


class Edit(BaseModel):
    path: str
    lines: int = 0
    notes: dict[str, Any] = {}


class Colour(BaseModel):
    name: str


def edit_file(path: str) -> Edit:
    if path.startswith("bad"):
        raise ValueError(f"no {path}")
    return Edit(path=path, lines=len(path))


async def merge_all(plan: Plan, ship: Decision | None, note: str) -> Edit:
    await asyncio.sleep(0)
    by = ship.decided_by if ship else "nobody"
    return Edit(path=",".join(plan.files), notes={"by": by, "note": note})


@workflow(input=Ticket)
def fix(ctx: Ctx[Ticket]) -> Node:
    plan = Task("plan", Plan, agent=AGENT, prompt=f"Plan {ctx.input.title}.", retries=2)
    found = ctx.output_maybe(plan)
    ship = Approval("ship", title="Merge?", timeout=timedelta(hours=1))
    edits = [
        Task(f"edit:{name}", Edit, run=edit_file, args={"path": name}, retries=1)
        for name in (found.files if found else [])
    ]
    merge = Task(
        "merge", Edit, run=merge_all, args={"note": "n"}, needs={"plan": plan, "ship": ship}
    )
    return Sequence(plan, Parallel(*edits, max_concurrency=2), ship, merge)


@workflow(name="refine")
def refine(ctx: Ctx[NoInput]) -> Node:
    write = Task("write", Edit, agent=AGENT, prompt=f"Pass {ctx.iteration('refining')}.")
    last = ctx.output_maybe(write)
    done = last is not None and last.lines > 2
    return Loop("refining", write, until=done, max_iterations=10**6)


def flow(*children: Node) -> Workflow:
    @workflow(name="flow")
    def flow(ctx: Ctx[NoInput]) -> Node:
        return Sequence(*children)

    return flow


def planned(*files: str, **given: Any) -> TestRun:
    return run_workflow(fix, Ticket(title="x"), agents={"plan": Plan(files=list(files))}, **given)


def code_of(run: TestRun) -> str | None:
    return run.error.code if run.error else None


def test_a_run_to_its_end() -> None:
    run = planned("a.py", "b.py", approve=True)
    assert run.status == "finished"
    assert run.error is None
    assert run.output("plan", Plan) == Plan(files=["a.py", "b.py"])
    assert run.output("edit:a.py") == Edit(path="a.py", lines=4)
    assert run.output("merge").notes == {"by": "test", "note": "n"}
    assert run.output("ship").approved
    assert run.states["merge"] is NodeState.FINISHED
    assert [(call.node_id, call.attempt) for call in run.calls] == [
        ("plan", 1), ("edit:a.py", 1), ("edit:b.py", 1), ("merge", 1),
    ]  # fmt: skip
    assert [call.prompt for call in run.calls_of("plan")] == ["Plan x."]
    assert run.calls_of("merge")[0].args["note"] == "n"


def test_the_tree_shows_states_and_what_is_awaited() -> None:
    run = planned("a.py")
    run.assert_status("waiting-approval")
    assert run.waiting == {"ship": "approval"}
    assert run.tree() == dedent("""\
        Sequence
          plan: finished
          Parallel (at most 2)
            edit:a.py: finished
          ship: waiting-approval
          merge: pending""")
    assert "ship: approval: Merge?" in run.explain()
    assert repr(run).startswith("<run of 'fix': waiting-approval; plan finished")
    with pytest.raises(AssertionError, match=r"(?s)expected finished.*ship: waiting-approval"):
        run.assert_status("finished")


def test_a_run_takes_milliseconds() -> None:
    planned("a.py", approve=True)
    began = time.perf_counter()
    for _ in range(10):
        planned("a.py", "b.py", approve=True)
    assert time.perf_counter() - began < 10 * 0.05


def test_a_denial_fails_and_a_resume_asks_again() -> None:
    run = planned("a.py").deny("ship", note="no")
    assert code_of(run) == "APPROVAL_DENIED"
    assert run.error_of("ship") is not None
    run.resume().approve()
    assert run.status == "finished"
    assert len(run.calls_of("plan")) == 1


def test_decisions_can_be_said_for_each_approval() -> None:
    answers = {"ship": Decision(approved=True, decided_by="ann")}
    assert planned("a", approve=answers).output("merge").notes["by"] == "ann"
    assert planned("a", approve={"ship": False}).status == "failed"


def test_what_is_not_open_cannot_be_decided() -> None:
    run = planned("a.py")
    with pytest.raises(HarnessError, match="open: 'ship'") as unknown:
        run.approve("merge")
    assert unknown.value.code == "APPROVAL_UNKNOWN"
    run.approve()
    with pytest.raises(HarnessError) as ended:
        run.approve()
    assert ended.value.code == "RUN_ALREADY_ENDED"


def test_a_failing_body_is_tried_as_often_as_it_says() -> None:
    run = planned("bad.py", "ok.py", approve=True)
    assert run.status == "failed"
    assert code_of(run) == "TASK_RAISED"
    assert run.error is not None
    assert "ValueError: no bad.py" in run.error.message
    assert [call.attempt for call in run.calls_of("edit:bad.py")] == [1, 2]
    assert run.states["merge"] == "pending"
    assert "edit:bad.py: failed (TASK_RAISED: ValueError: no bad.py)" in run.tree()


def test_bodies_can_be_overridden_by_value_function_and_exception() -> None:
    def write(path: str) -> Edit:
        return Edit(path=path.upper())

    overridden = {"edit:a": Edit(path="given"), "edit:b": write, "edit:c": OSError("disk")}
    run = planned("a", "b", "c", tasks=overridden)
    assert [run.output(f"edit:{name}").path for name in "ab"] == ["given", "B"]
    assert code_of(run) == "TASK_RAISED"
    wrong = planned("a", tasks={"edit:a": {"path": "a dict"}})
    assert code_of(wrong) == "OUTPUT_INVALID"


def test_an_agent_that_answers_nonsense_is_asked_again() -> None:
    answers = [{"files": 7}, RuntimeError("overloaded"), {"files": ["a"]}]
    run = run_workflow(fix, {"title": "x"}, agents={"plan": answers}, approve=True)
    assert run.status == "finished"
    codes = [call.error and call.error.code for call in run.calls_of("plan")]
    assert codes == ["OUTPUT_INVALID", "AGENT_FAILED", None]


def test_a_retry_is_due_by_the_clock() -> None:
    work = Task(
        "work", Edit, run=edit_file, args={"path": "x"}, retries=2,
        retry_policy=RetryPolicy(initial=60, multiplier=2),
    )  # fmt: skip
    script = [OSError(), AttemptError("TASK_TIMEOUT"), Edit(path="x")]
    run = start_workflow(flow(work), tasks={"work": script})
    assert run.waiting == {"work": "retry"}
    run.advance(seconds=59)
    assert len(run.calls) == 1
    run.advance(seconds=1)
    assert [call.error and call.error.code for call in run.calls] == ["TASK_RAISED", "TASK_TIMEOUT"]
    run.advance(timedelta(minutes=10))
    assert run.status == "finished"
    assert (run.calls[2].at - run.calls[0].at) == timedelta(seconds=180)
    skipped = run_workflow(flow(work), tasks={"work": script})
    assert skipped.status == "finished"
    assert skipped.now - run.calls[0].at == timedelta(seconds=180)


def test_what_another_try_would_repeat_is_not_tried_again() -> None:
    work = Task("work", Edit, run=edit_file, args={"path": "x"}, retries=5)
    nan = Edit(path="x", notes={"deep": [float("nan")]})
    run = run_workflow(flow(work), tasks={"work": nan})
    assert code_of(run) == "OUTPUT_NOT_SERIALISABLE"
    assert len(run.calls) == 1


def test_outputs_come_back_as_the_database_gives_them() -> None:
    work = Task("work", Edit, run=edit_file, args={"path": "x"})
    given = Edit(path="x", notes={"bb": (1, 2), "a": 1e17})
    run = run_workflow(flow(work), tasks={"work": given})
    notes = run.output(work).notes
    assert list(notes.items()) == [("a", 10**17), ("bb", [1, 2])]
    assert isinstance(notes["a"], int)


def test_a_loop_is_read_pass_by_pass() -> None:
    answers = [Edit(path="a", lines=number) for number in (1, 2, 3)]
    run = run_workflow(refine, agents={"write": answers})
    assert run.status == "finished"
    assert run.output("write").lines == 3
    assert run.output("write", iteration=1).lines == 2
    assert run.nodes["write", 0] == "finished"
    assert run.states == {"write": "finished", "refining": "finished"}
    assert [call.prompt for call in run.calls] == ["Pass 0.", "Pass 1.", "Pass 2."]
    with pytest.raises(HarnessError) as exhausted:
        run_workflow(refine, agents={"write": answers[:2]})
    assert exhausted.value.code == "SCRIPT_EXHAUSTED"


def test_a_run_without_an_end_is_ended() -> None:
    endless = {"write": Edit(path="a")}
    with pytest.raises(HarnessError, match="after 20 frames:\nLoop refining, pass") as error:
        run_workflow(refine, agents=endless, max_frames=20)
    assert error.value.code == "RUN_UNENDING"


def test_timers_and_deadlines() -> None:
    both = flow(Parallel(Timer("nap", timedelta(days=2)), WaitForEvent("go", timeout=3600)))
    run = run_workflow(both)
    assert run.waiting == {"nap": "timer", "go": "event"}, "no deadline passes by itself"
    run.advance(hours=2)
    assert code_of(run) == "WAIT_EXPIRED"
    start = datetime(2026, 1, 1, tzinfo=UTC)
    napped = run_workflow(flow(Timer("nap", until=datetime(2026, 3, 1, tzinfo=UTC))), now=start)
    assert napped.output("nap").due_at == napped.now == datetime(2026, 3, 1, tzinfo=UTC)
    late = planned("a").advance(hours=1)
    assert code_of(late) == "WAIT_EXPIRED"


def test_a_timer_before_a_deadline_skips_up_to_it() -> None:
    tree = flow(Parallel(Timer("nap", 60), Approval("gate", timeout=90)))
    run = run_workflow(tree)
    assert run.waiting == {"gate": "approval"}
    assert run.states["nap"] == "finished"


def test_signals_and_answers() -> None:
    tree = flow(
        WaitForEvent("go", Colour), WaitForEvent("any"), HumanTask("ask", Colour, prompt="Which?")
    )
    run = start_workflow(tree)
    assert run.waiting == {"go": "event"}
    run.signal("go", {"wrong": 1}).signal("any").signal("go", Colour(name="red"))
    assert run.output("go") == Colour(name="red")
    assert run.output("any").payload is None
    with pytest.raises(HarnessError) as refused:
        run.answer("ask", {"nom": "rouge"})
    assert refused.value.code == "ANSWER_INVALID"
    assert run.waiting == {"ask": "human"}
    assert run.answer("ask", {"name": "blue"}).status == "finished"
    scripted = run_workflow(
        tree,
        signals=[("go", {"name": "g"}), ("any", [1])],
        humans={"ask": lambda prompt: {"name": prompt}},
    )
    assert scripted.output("any").payload == [1]
    assert scripted.output("ask", Colour).name == "Which?"


def tell(heard: Event | None, missed: Event | None) -> Edit:
    return Edit(path="x", notes={"heard": heard and heard.payload, "missed": missed})


def test_needs_are_what_a_render_would_read() -> None:
    heard, missed = WaitForEvent("heard"), WaitForEvent("missed", skip_if=True)
    told = Task("told", Edit, run=tell, needs={"heard": heard, "missed": missed})
    run = run_workflow(flow(heard, missed, told), signals={"heard": {"bb": [1]}})
    assert run.output(told).notes == {"heard": {"bb": [1]}, "missed": None}


def spoil(items: list[int]) -> Edit:
    items.append(1)
    raise ValueError(len(items))


def test_a_body_that_changes_its_arguments_gets_them_anew() -> None:
    work = Task("work", Edit, run=spoil, args={"items": [0]}, retries=1)
    run = run_workflow(flow(work))
    assert [call.error and call.error.message for call in run.calls] == ["ValueError: 2"] * 2
    assert run.calls[0].args == {"items": [0]}


def test_an_agent_without_a_script_is_named() -> None:
    with pytest.raises(HarnessError, match=r"'plan' has no script.*agents\['plna'\]") as error:
        run_workflow(fix, Ticket(title="x"), agents={"plna": Plan(files=[])})
    assert error.value.code == "SCRIPT_MISSING"
    assert "agents={'plan': Plan(…)}" in str(error.value.hint)


def test_an_assertion_in_a_script_fails_the_test() -> None:
    def plan(prompt: str) -> Plan:
        assert prompt == "something else"
        return Plan(files=[])

    with pytest.raises(AssertionError, match="something else"):
        run_workflow(fix, Ticket(title="x"), agents={"plan": plan})


def test_a_stop_of_the_test_is_no_failed_attempt() -> None:
    def plan(prompt: str) -> Plan:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_workflow(fix, Ticket(title="x"), agents={"plan": plan})


def test_errors_of_the_core_come_through() -> None:
    def local(path: str) -> Edit:
        return Edit(path=path)

    with pytest.raises(AuthorError, match="defined inside a function"):
        run_workflow(flow(Task("a", Edit, run=local, args={"path": "x"})))
    with pytest.raises(InputError):
        run_workflow(fix, {"titel": "x"})

    @workflow(name="raises")
    def raises(ctx: Ctx[NoInput]) -> Node:
        raise KeyError("mine")

    with pytest.raises(RenderError) as failed:
        run_workflow(raises)
    assert isinstance(failed.value.__cause__, KeyError)


def test_unknown_and_missing_outputs_are_explained() -> None:
    run = planned("a.py")
    with pytest.raises(HarnessError, match=r"merge\[0\] is pending") as missing:
        run.output("merge")
    assert missing.value.code == "OUTPUT_MISSING"
    with pytest.raises(HarnessError) as unknown:
        run.output("marge")
    assert unknown.value.code == "NODE_UNKNOWN"


def test_a_cap_of_the_run_and_an_async_body_in_a_running_loop() -> None:
    async def inside() -> TestRun:
        return planned("a", "b", "c", approve=True, max_concurrency=1)

    run = asyncio.run(inside())
    assert [call.node_id for call in run.calls][1:] == ["edit:a", "edit:b", "edit:c", "merge"]
    assert run.status == "finished"


def test_a_resume_may_bring_new_scripts() -> None:
    run = run_workflow(fix, {"title": "x"}, agents={"plan": RuntimeError("down")})
    assert (run.status, len(run.calls)) == ("failed", 3)
    run.resume(agents={"plan": Plan(files=[])})
    assert run.status == "waiting-approval"
    assert run.calls[-1].attempt == 4
