"""How long a person waits: commands, and the first body of `smithers up`, with a warm database.

Each figure is the median of a few, beside that of a Python that imports the database driver and
ends: what no command could do without.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TIMES = 9
WORKFLOW = """
import time
from pathlib import Path


from pydantic import BaseModel
from smithers.workflow import Ctx, Node, Sequence, Task, workflow


class Where(BaseModel):
    path: str


class Began(BaseModel):
    at: float


def stamp(path: str) -> Began:
    at = time.time()
    with Path(path).open("a") as file:
        file.write(f"{at}\\n")
    return Began(at=at)


@workflow(input=Where)
def two(ctx: Ctx[Where]) -> Node:
    path = {"path": ctx.input.path}
    return Sequence(*(Task(name, Began, run=stamp, args=path) for name in ("first", "second")))
"""


def measure() -> dict[str, str]:
    """Milliseconds, each with its ratio to the floor."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "two.py").write_text(WORKFLOW)
        smithers("db", "start", folder=folder)
        try:
            floor = median(lambda: timed([sys.executable, "-c", "import psycopg"], folder))
            found = {
                "smithers --help": median(lambda: smithers("--help", folder=folder)),
                "smithers ps": median(lambda: smithers("ps", folder=folder)),
                "up of two tasks, to its first body": median(lambda: first_body(folder)[0]),
                "up of two tasks, to its end": median(lambda: first_body(folder)[1]),
            }
        finally:
            smithers("db", "stop", folder=folder)
    ratios = {what: f"{ms:10.0f} ms, {ms / floor:.1f} floors" for what, ms in found.items()}
    return {"floor: python -c 'import psycopg'": f"{floor:10.0f} ms", **ratios}


def median(once: Callable[[], float]) -> float:
    return statistics.median(once() for _ in range(TIMES)) * 1000


def smithers(*words: str, folder: Path) -> float:
    return timed([str(Path(sys.executable).with_name("smithers")), *words], folder)


def first_body(folder: Path) -> tuple[float, float]:
    """Seconds from the start of the command to the first line of the first body, and to its end."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    began = time.time()
    took = smithers("up", "two.py", "--input", json.dumps({"path": str(log)}), folder=folder)
    return float(log.read_text().split()[0]) - began, took


def timed(words: list[str], folder: Path) -> float:
    """Seconds that a command takes; it must succeed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SMITHERS_")}
    began = time.perf_counter()
    subprocess.run(words, cwd=folder, env=kept, check=True, capture_output=True)
    return time.perf_counter() - began
