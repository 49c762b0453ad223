"""A mixed workflow: fan-out of 8, a loop of 3 passes, an approval, a timer and a signal.

Every body appends a line when it starts and when it is about to return to a log outside the
database: the oracle of what really ran.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from pydantic import BaseModel

from smithers.workflow import (
    Approval,
    Ctx,
    Loop,
    Node,
    Parallel,
    Sequence,
    Task,
    Timer,
    WaitForEvent,
    workflow,
)


class Params(BaseModel):
    """Where the log is, and how long a body takes at most."""

    log: str
    seconds: float = 0.2
    width: int = 8


class Note(BaseModel):
    """What a body returns: its key and who it was."""

    key: str
    pid: int


def note(log: str, run_id: str, key: str, seconds: float) -> Note:
    """Do nothing for a while, on the record."""
    append(log, f"S {run_id} {key} {time.time():.6f}")
    time.sleep(random.uniform(0, seconds))
    append(log, f"E {run_id} {key} {time.time():.6f}")
    return Note(key=key, pid=os.getpid())


def append(log: str, line: str) -> None:
    with Path(log).open("a") as out:
        out.write(line + "\n")


@workflow(input=Params, name="mixed")
def mixed(ctx: Ctx[Params]) -> Node:
    """Everything that a run can wait for, in one tree."""

    def work(name: str, key: str | None = None) -> Task[Note]:
        args = {
            "log": ctx.input.log,
            "run_id": ctx.run_id,
            "key": key or f"{name}/0",
            "seconds": ctx.input.seconds,
        }
        return Task(name, Note, run=note, args=args)

    repeat = ctx.iteration("loop")
    lap = work("lap", f"lap/{repeat}")
    return Sequence(
        work("first"),
        Parallel(*(work(f"fan:{number}") for number in range(ctx.input.width))),
        Loop("loop", lap, until=repeat >= 2, max_iterations=5),
        Approval("gate", title="go on?"),
        Timer("nap", 0.3),
        WaitForEvent("go"),
        work("last"),
    )
