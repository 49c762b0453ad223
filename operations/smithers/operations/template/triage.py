"""Sort a folder of tickets: read each one, draft answers, ask before they are sent.

A workflow is a function from what is stored about a run to the tree of what is to be done. It is
called again after every change, so it only reads `ctx`: work belongs into tasks. Task ids are
stable, made from input or from outputs.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel
from smithers.workflow import Approval, Ctx, Node, Parallel, Sequence, Task, workflow


class Inbox(BaseModel):
    """The input of a run."""

    folder: str = "tickets"


class Tickets(BaseModel):
    names: list[str]


class Draft(BaseModel):
    urgent: bool
    answer: str


class Sent(BaseModel):
    count: int


def list_tickets(folder: str) -> Tickets:
    """A body: a plain function of this module; what it returns is stored, and never made again."""
    return Tickets(names=sorted(path.name for path in Path(folder).glob("*.txt")))


def draft_answer(folder: str, name: str) -> Draft:
    text = (Path(folder) / name).read_text()
    print(f"read {len(text)} characters of {name}")  # smithers logs RUN shows it
    return Draft(urgent="!" in text, answer=f"Thank you for: {text.strip()}")


def send(**drafts: Draft) -> Sent:
    return Sent(count=len(drafts))


@workflow(input=Inbox)
def triage(ctx: Ctx[Inbox]) -> Node:
    folder = ctx.input.folder
    tickets = Task("list", Tickets, run=list_tickets, args={"folder": folder})
    found = ctx.output_maybe(tickets)  # None until the task has finished
    drafts = {
        f"draft_{number}": Task(
            f"draft:{name}",
            Draft,
            run=draft_answer,
            args={"folder": folder, "name": name},
        )
        for number, name in enumerate(found.names if found else [])
    }
    return Sequence(
        tickets,
        Parallel(*drafts.values(), max_concurrency=4),
        Approval("send?", title=f"Send {len(drafts)} answers?"),
        found and Task("send", Sent, run=send, needs=drafts),
    )
