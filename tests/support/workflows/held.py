"""A workflow whose bodies stay until a test lets them go, each with a child of its own.

A body writes its name, its pid and its child's pid to `pids` in the folder, and goes on when
`go` or `go-PID` is there. What starts and returns is on the record in `log`, as in `mixed`.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from pydantic import BaseModel

from smithers.workflow import Approval, Ctx, Node, Parallel, Sequence, Task, Timer, workflow


class Params(BaseModel):
    """The folder, how many bodies there are, and what the run waits for after them."""

    folder: str
    width: int = 1
    gate: bool = False
    nap: float | None = None


class Held(BaseModel):
    """Who returned."""

    pid: int


def hold(folder: str, run_id: str, name: str) -> Held:
    """Stay until a file appears; leave the child behind."""
    place = Path(folder)
    child = subprocess.Popen(["sleep", "86400"])
    record(place / "log", f"S {run_id} {name}/0 {time.time():.6f}")
    record(place / "pids", f"{name} {os.getpid()} {child.pid}")
    while not (place / "go").exists() and not (place / f"go-{os.getpid()}").exists():
        time.sleep(0.01)
    record(place / "log", f"E {run_id} {name}/0 {time.time():.6f}")
    return Held(pid=os.getpid())


def last(folder: str, run_id: str) -> Held:
    """Return at once."""
    record(Path(folder) / "log", f"S {run_id} last/0 {time.time():.6f}")
    record(Path(folder) / "log", f"E {run_id} last/0 {time.time():.6f}")
    return Held(pid=os.getpid())


def record(path: Path, line: str) -> None:
    with path.open("a") as out:
        out.write(line + "\n")


@workflow(input=Params, name="held")
def held(ctx: Ctx[Params]) -> Node:
    """Bodies that stay, then what the run waits for, then one more task."""
    args = {"folder": ctx.input.folder, "run_id": ctx.run_id}
    names = [f"hold:{number}" for number in range(ctx.input.width)]
    return Sequence(
        Parallel(*(Task(name, Held, run=hold, args={**args, "name": name}) for name in names)),
        *([Timer("nap", ctx.input.nap)] if ctx.input.nap is not None else []),
        *([Approval("gate", title="go on?")] if ctx.input.gate else []),
        Task("last", Held, run=last, args=args),
    )
