"""Small models, functions and workflows for tests of the pure core."""

from __future__ import annotations

from typing import Unpack

from pydantic import BaseModel

from smithers.workflow import (
    Child,
    Ctx,
    Node,
    NoInput,
    Sequence,
    Task,
    Workflow,
    workflow,
)
from smithers.workflow.tasks import TaskOptions


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
