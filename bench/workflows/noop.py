"""Tasks that do nothing, side by side or one after another."""

from __future__ import annotations

import time

from pydantic import BaseModel

from smithers.workflow import Ctx, Loop, Node, Parallel, Task, workflow


class Shape(BaseModel):
    """How many tasks side by side, or how many passes one after another."""

    width: int = 0
    passes: int = 0


class Began(BaseModel):
    """When the body began, by the machine's clock."""

    at: float


def begin() -> Began:
    return Began(at=time.time())


@workflow(input=Shape, name="wide")
def wide(ctx: Ctx[Shape]) -> Node:
    """Many tasks at once."""
    return Parallel(*(Task(f"t:{number}", Began, run=begin) for number in range(ctx.input.width)))


@workflow(input=Shape, name="deep")
def deep(ctx: Ctx[Shape]) -> Node:
    """One task after another."""
    return Loop(
        "loop",
        Task("step", Began, run=begin),
        until=ctx.iteration("loop") + 1 >= ctx.input.passes,
        max_iterations=100_000,
    )
