"""Attempts and executors for tests, without a database."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from smithers.bundle.build import build
from smithers.bundle.manifest import Bundle
from smithers.bundle.pack import pack
from smithers.bundle.store import Stored
from smithers.bundle.unpack import ensure
from smithers.process.child import Spawner
from smithers.process.environment import executor_mark
from smithers.process.output import Pump
from smithers.process.settings import Settings, load_settings
from smithers.sql.rows import ClaimedTask
from smithers.worker.attempt import Attempt
from smithers.worker.executor import Executor, start_executor
from smithers.worker.outcome import Failed, Finished, Outcome, Released
from support.runs import WORKFLOWS

MODULE = "worker_tasks"


def bundle() -> Bundle:
    """The bundle of the bodies that a worker is tested with."""
    return build(WORKFLOWS / f"{MODULE}.py")


def descriptor(function: str, /, **more: object) -> dict[str, Any]:
    """A descriptor of a task whose body is in `worker_tasks`; `args` are the keywords left."""
    known = ("kind", "needs", "partial", "agents", "prompt", "timeout", "heartbeat_timeout",
             "retries", "isolate", "model", "queue", "retry")  # fmt: skip
    special = {name: more.pop(name) for name in known if name in more}
    module = bundle().manifest.module
    model = special.pop("model", "Out")
    return {
        "kind": "compute",
        "run": f"{module}:{function}" if ":" not in function else function,
        "args": more,
        "needs": [],
        "partial": None,
        "output": {"model": f"{module}:{model}", "name": "out", "shape": "0" * 64, "schema": {}},
        "retries": 0,
        "timeout": None,
        "heartbeat_timeout": None,
        **special,
    }


def task(body: dict[str, Any], **more: Any) -> ClaimedTask:
    """A task as a claim gives it."""
    given: dict[str, Any] = {
        "run_id": "run",
        "node_id": "node",
        "iteration": 0,
        "attempt": 1,
        "claim_id": uuid4(),
        "queue": "default",
        "source_hash": "0" * 64,
        "failures": 0,
        "waited_ms": 1.0,
        "descriptor": body,
        "needs": None,
    }
    return ClaimedTask(**{**given, **more})


@dataclass
class Desk:
    """Runs attempts in real executors."""

    folder: Path
    limit_mb: int = 256
    executors: list[Executor] = field(default_factory=list[Executor])

    def __post_init__(self) -> None:
        self._pump = Pump()
        self._spawner = Spawner(lambda: None, pump=self._pump)

    @property
    def settings(self) -> Settings:
        given = {"home": self.folder / ".smithers", "log_limit_mb": self.limit_mb}
        return load_settings(given, environ={}, cwd=self.folder)

    def start(self) -> Executor:
        made = bundle()
        stored = Stored(made.manifest, pack(made.contents))
        folder = ensure(lambda _: stored, self.settings.home, made.source_hash)
        mark = executor_mark(uuid4().hex, 1, uuid4())
        executor = start_executor(self._spawner.spawn, folder, mark=mark, settings=self.settings)
        self.executors.append(executor)
        return executor

    def run(self, body: dict[str, Any], executor: Executor | None = None, **more: Any) -> Outcome:
        """Run one attempt to its end."""
        executor = executor or self.start()
        return executor.run(attempt(body, **more))

    def close(self) -> None:
        for executor in self.executors:
            executor.dispose()
        self._pump.close()


def attempt(body: dict[str, Any], **more: Any) -> Attempt:
    """An attempt that was claimed just now."""
    return Attempt(task(body, **more), acknowledged_at=0.0)


def output(outcome: Outcome) -> dict[str, Any]:
    """The output of an attempt that must have finished."""
    import json

    assert isinstance(outcome, Finished), outcome
    return dict(json.loads(outcome.output))


def error(outcome: Outcome) -> dict[str, Any]:
    """The error of an attempt that must have one."""
    assert isinstance(outcome, Failed | Released), outcome
    assert outcome.error is not None
    return outcome.error
