"""Workflows that are run by a fleet and by smithers.testing: both must end alike."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, BaseModel

from smithers.workflow import (
    Approval,
    Branch,
    Ctx,
    Decision,
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

SOON = RetryPolicy(initial=0.05, multiplier=1.0, jitter="none")


class Draft(BaseModel):
    """What most bodies return; `facts` is a JSON column, `at` a moment."""

    text: str
    number: float = 0.5
    facts: dict[str, Any] = {}
    at: AwareDatetime = datetime(2026, 5, 1, 14, 0, tzinfo=UTC)


class Review(BaseModel):
    """Whether a draft is good."""

    passed: bool
    tries: int


class Choice(BaseModel):
    """What a person answers."""

    colour: str
    tags: list[str] = []


class Folder(BaseModel):
    """Where bodies leave and find files."""

    folder: str


def draft(iteration: int, before: str | None) -> Draft:
    """Write; keys and zone are such as the database doesn't keep."""
    at = datetime.fromisoformat("2026-05-01T16:00:00+02:00")
    facts = {"bb": 1, "a": [1.0, 1e20], "ab": {"z": None, "y": -0.0}, "é": "x\0y"}
    return Draft(text=f"{before or ''}{iteration}", facts=facts, at=at)


async def review(draft: Draft) -> Review:
    """Judge."""
    return Review(passed=len(draft.text) >= 3, tries=len(draft.text))


def echo(**given: object) -> Draft:
    """Say what came in."""
    said = {name: _told(value) for name, value in given.items()}
    return Draft(text=",".join(sorted(given)), facts=said)


def _told(value: object) -> object:
    if isinstance(value, Fired | Decision):  # the clock and the person differ
        return type(value).__name__
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def say(text: str) -> Draft:
    """Say it."""
    return Draft(text=text)


def fail(text: str) -> Draft:
    """Never work."""
    raise ValueError(text)


def fail_twice(folder: str) -> Draft:
    """Work at the third call."""
    path = Path(folder) / "calls"
    with path.open("a") as out:
        out.write("x")
    count = len(path.read_text())
    if count < 3:
        raise ValueError(f"call {count}")
    return Draft(text=f"after {count}")


def fail_beside(folder: str) -> Any:
    """Return another model, once the neighbour has begun."""
    wait_for(Path(folder) / "begun")
    return Review(passed=True, tries=0)


def outlast(folder: str) -> Draft:
    """End when the neighbour has failed."""
    (Path(folder) / "begun").touch()
    wait_for(Path(folder) / "go")
    return Draft(text="yes")


def wait_for(path: Path) -> None:
    """Stay until a file is there."""
    while not path.exists():
        time.sleep(0.01)


@workflow(name="looping")
def looping(ctx: Ctx[NoInput]) -> Node:
    """A loop until a review passes, inside another one."""
    lap = ctx.iteration("outer")
    write = Task("write", Draft, run=draft, args={"iteration": 0, "before": None})
    last = ctx.latest(write)
    now = ctx.iteration("inner")
    write = Task(
        "write", Draft, run=draft, args={"iteration": now, "before": last.text if last else None}
    )
    check = Task("check", Review, run=review, needs={"draft": write})
    found = ctx.output_maybe(check)
    return Sequence(
        Task("begin", Draft, value=Draft(text="given")),
        Loop(
            "outer",
            Loop("inner", write, check, until=found and found.passed, max_iterations=4),
            until=lap >= 1,
        ),
        Loop(
            "never", Task("spin", Draft, run=say, args={"text": "x"}), until=False, max_iterations=2
        ),
        Task("end", Draft, run=echo, needs={"check": check}),
    )


@workflow(name="parting", input=Folder)
def parting(ctx: Ctx[Folder]) -> Node:
    """Failures side by side: one tolerated, one that ends the run while others are in flight."""
    args = {"folder": ctx.input.folder}
    bad = Task(
        "bad",
        Draft,
        run=fail,
        args={"text": "x"},
        retries=1,
        retry_policy=SOON,
        continue_on_fail=True,
    )
    return Sequence(
        Parallel(
            bad,
            *(Task(f"ok:{n}", Draft, run=say, args={"text": str(n)}) for n in range(3)),
            max_concurrency=2,
        ),
        Task("joined", Draft, run=echo, needs={"bad": bad}, args={"seen": True}),
        Task("skipped", Draft, run=say, args={"text": "no"}, skip_if=True),
        Parallel(
            Task("odd", Draft, run=fail_beside, args=args, retries=0),
            Sequence(
                Task("fine", Draft, run=outlast, args=args),
                Task("too-late", Draft, run=say, args={"text": "never"}),
            ),
        ),
        Task("behind", Draft, run=say, args={"text": "never"}),
    )


@workflow(name="asking")
def asking(ctx: Ctx[NoInput]) -> Node:
    """Everything that a run can wait for, and tasks that need what came."""
    gate = Approval("gate", title="Go on?")
    veto = Approval("veto", title="Stop?", continue_on_fail=True)
    colour = HumanTask("colour", Choice, prompt="Which?")
    go, plain = WaitForEvent("go", Choice), WaitForEvent("plain")
    nap = Timer("nap", 0.2)
    decided = ctx.output_maybe(veto)
    return Sequence(
        Parallel(gate, veto, colour, go, plain, nap),
        Task(
            "told",
            Draft,
            run=echo,
            args={"x": {"bb": 1, "a": 2}},
            needs={"gate": gate, "veto": veto, "colour": colour, "go": go, "nap": nap},
        ),
        Branch(
            decided and decided.approved,
            Task("yes", Draft, run=say, args={"text": "yes"}),
            Task("no", Draft, run=say, args={"text": "no"}, needs_approval=True),
        ),
    )


@workflow(name="hearing")
def hearing(ctx: Ctx[NoInput]) -> Node:
    """A task that needs a signal without a model of its own."""
    heard = WaitForEvent("word")
    return Sequence(heard, Task("heard", Draft, run=echo, needs={"heard": heard}))


@workflow(name="flaky", input=Folder)
def flaky(ctx: Ctx[Folder]) -> Node:
    """Two failures, then success."""
    return Task(
        "work",
        Draft,
        run=fail_twice,
        args={"folder": ctx.input.folder},
        retries=2,
        retry_policy=SOON,
    )


@workflow(name="denied")
def denied(ctx: Ctx[NoInput]) -> Node:
    """A denial that ends the run."""
    return Sequence(Approval("gate"), Task("after", Draft, run=say, args={"text": "never"}))


__all__ = ["asking", "denied", "flaky", "hearing", "looping", "parting"]
