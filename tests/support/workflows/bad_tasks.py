"""A workflow with one task that misbehaves in the way that its input names."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from smithers.workflow import Ctx, Node, Task, workflow


class Params(BaseModel):
    """Which fault to show."""

    fault: str
    retries: int = 0
    timeout: float | None = None


class Out(BaseModel):
    """A result with one field of each kind that can go wrong."""

    text: str = ""
    number: float = 0.0
    whole: int = 0


def misbehave(fault: str) -> Any:
    """Do the one bad thing; what it returns is the task's result."""
    return FAULTS[fault]()


def fail() -> None:
    raise ValueError("deliberate")


def out_of_memory() -> None:
    raise MemoryError


def flood() -> Out:
    line = b"x" * 65535 + b"\n"
    for _ in range(16384):
        os.write(1, line)
    return Out()


def leave_a_child() -> Out:
    subprocess.Popen(["sleep", "86400"])
    return Out(text="left")


FAULTS: dict[str, Callable[[], Any]] = {
    "none": lambda: Out(text="fine"),
    "segfault": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(3),
    "sys-exit": lambda: sys.exit(4),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "raise": fail,
    "memory": out_of_memory,
    "flood": flood,
    "hang": lambda: time.sleep(3600),
    "wrong-model": lambda: {"text": "not a model"},
    "invalid": lambda: Out.model_construct(text="x", number="not a number", whole=1),
    "nan": lambda: Out(number=float("nan")),
    "infinity": lambda: Out(number=float("inf")),
    "nul": lambda: Out(text="a\0b"),
    "surrogate": lambda: Out(text="a\ud800b"),
    "big": lambda: Out(whole=2**70),
    "huge": lambda: Out(text="x" * (17 * 1024 * 1024)),
    "grandchild": leave_a_child,
    "import": lambda: importlib.import_module("no_such_distribution"),
}


@workflow(input=Params, name="bad-tasks")
def bad_tasks(ctx: Ctx[Params]) -> Node:
    """Run it."""
    return Task(
        "culprit",
        Out,
        run=misbehave,
        args={"fault": ctx.input.fault},
        retries=ctx.input.retries,
        timeout=ctx.input.timeout,
    )
