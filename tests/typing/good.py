"""A workflow that uses every part of the authoring API; both type checkers accept it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import assert_type

from pydantic import BaseModel

from smithers.workflow import (
    AgentSpec,
    Approval,
    Branch,
    Child,
    Ctx,
    Decision,
    Event,
    Fired,
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
    workflow,
)


class Ticket(BaseModel):
    title: str


class File(BaseModel):
    path: str


class Plan(BaseModel):
    files: list[File]


class Edit(BaseModel):
    ok: bool


class Review(BaseModel):
    approved: bool
    comments: list[str]


def edit_file(path: str) -> Edit:
    return Edit(ok=bool(path))


async def review_all(plan: Plan | None) -> Review:
    return Review(approved=plan is not None, comments=[])


claude, codex = AgentSpec("claude"), AgentSpec("codex", options={"model": "small"})


@workflow(input=Ticket, include=["prompts/plan.md"])
def fix(ctx: Ctx[Ticket]) -> Node:
    plan = Task("plan", Plan, agent=[claude, codex], prompt=f"Plan a fix: {ctx.input.title}")
    review = Task("review", Review, run=review_all, needs={"plan": plan}, retries=1)
    assert_type(plan, Task[Plan])
    assert_type(review, Task[Review])
    p = ctx.output_maybe(plan)
    assert_type(p, Plan | None)
    last = ctx.latest(review)
    assert_type(ctx.outputs(review), list[Review])
    return Sequence(
        plan,
        p
        and Parallel(
            *(Task(f"edit:{f.path}", Edit, run=edit_file, args={"path": f.path}) for f in p.files),
            max_concurrency=3,
        ),
        Loop("reviews", review, until=last and last.approved, max_iterations=4, on_max="fail"),
        Approval("ship", title="Merge this fix?", timeout=timedelta(days=1)),
        last is not None and Task("done", Edit, value=Edit(ok=last.approved)),
        Branch(last, Task("partial", Edit, run=partial(edit_file, "x")), None),
    )


@workflow()
def waits(ctx: Ctx[NoInput]) -> Child:
    gate = Approval("gate", continue_on_fail=True)
    answer = HumanTask("answer", Review, prompt="What do you think?")
    typed = WaitForEvent("merged", Edit, name="pr-merged", timeout=60)
    loose = WaitForEvent("anything")
    pause = Timer("pause", timedelta(minutes=5))
    at = Timer("at", until=datetime(2030, 1, 1, tzinfo=UTC))
    assert_type(ctx.output_maybe(gate), Decision | None)
    assert_type(ctx.output_maybe(answer), Review | None)
    assert_type(ctx.output_maybe(typed), Edit | None)
    assert_type(ctx.output_maybe(loose), Event | None)
    assert_type(ctx.output_maybe(pause), Fired | None)
    assert_type(ctx.output(typed).ok, bool)
    careful = Task(
        "careful",
        Edit,
        agent=claude,
        prompt="Careful now",
        depends_on=[gate, "answer"],
        retry_policy=RetryPolicy(initial=5),
        timeout=timedelta(hours=1),
        heartbeat_timeout=60.0,
        needs_approval="Really?",
        queue="agents",
        priority=3,
        label="Careful",
        meta={"team": "core"},
        isolate=True,
    )
    return [gate, answer, typed, loose, pause, at, careful, None]
