"""One mistake that an author makes easily, on the line that is marked."""

from __future__ import annotations

from pydantic import BaseModel

from smithers.workflow import AgentSpec, Ctx, Node, Sequence, Task, workflow


class Ticket(BaseModel):
    title: str


class Plan(BaseModel):
    paths: list[str]


class Edit(BaseModel):
    ok: bool


def edit(paths: list[str]) -> Edit:
    return Edit(ok=bool(paths))


@workflow(input=Ticket)
def fix(ctx: Ctx[Ticket]) -> Node:
    plan = Task("plan", Plan, agent=AgentSpec("claude"), prompt=ctx.input.title)
    if ctx.run_id:
        return Sequence(plan)
    return Task("b", Edit, agent="claude", prompt="Edit it")  # mistake
