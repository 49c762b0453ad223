"""Bodies that a worker is tested with. Tests name them; no workflow mounts them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from smithers.worker.task import heartbeat


class Out(BaseModel):
    """What every body returns."""

    text: str = ""
    number: float = 0.0
    whole: int = 0


class Loose(BaseModel):
    """A model that lets anything through."""

    value: Any = None


def say(text: str = "hello", times: int = 1) -> Out:
    """Print and return."""
    sys.stdout.write(text + "\n")
    sys.stderr.write("to stderr\n")
    return Out(text=text * times, whole=os.getpid())


async def say_later(text: str) -> Out:
    """The same, as a coroutine."""
    await asyncio.sleep(0)
    return Out(text=text)


def join(left: Out, right: Out | None, between: str) -> Out:
    """Use two other tasks' outputs."""
    return Out(text=f"{left.text}{between}{right.text if right else 'nothing'}")


def wait_for(path: str, mark: str = "") -> Out:
    """Stay until a file is there; says first that it has begun."""
    if mark:
        Path(mark).write_text(str(os.getpid()))
    while not Path(path).exists():
        time.sleep(0.01)
    return Out(text="waited")


def stay_with_family(mark: str, path: str = "/nowhere/ever") -> Out:
    """Start a child and a daemon of another session, then stay."""
    code = "import os, sys, time\nif os.fork() == 0:\n  os.setsid()\n  time.sleep(86400)\nprint()"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    subprocess.Popen(["sleep", "86400"])
    return wait_for(path, mark)


def beat(times: int, seconds: float, stop: bool = True) -> Out:
    """Beat a few times, then return or fall silent."""
    for number in range(times):
        heartbeat({"beat": number})
        time.sleep(seconds)
    if not stop:
        time.sleep(3600)
    return Out(whole=times)


def environment(name: str) -> Out:
    """What the body sees of a variable."""
    return Out(text=os.environ.get(name, "(not set)"))


def move_away() -> Out:
    """Leave the process in another folder, with an alarm running."""
    import signal

    here = str(Path.cwd())
    os.chdir("/")
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    return Out(text=here)


def grow(megabytes: int) -> Out:
    """Keep memory for ever."""
    _KEPT.append(b"x" * (megabytes << 20))
    return Out(whole=os.getpid())


def loose(what: str) -> Loose:
    """A value that is hard to store."""
    values = {"infinity": float("inf"), "deep": [[{"a": float("nan")}]]}
    return Loose(value=values.get(what, object()))


def needs_numpy_twice() -> Out:
    """Import what isn't there, at call time."""
    import no_such_distribution  # type: ignore[import-not-found]

    return Out(text=str(no_such_distribution))


_KEPT: list[bytes] = []
