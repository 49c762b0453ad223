"""What operations give back: frozen values with `to_json`, the object that --json prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from smithers.operations.blocked import Blocked
from smithers.operations.verdict import Unhealthy, Verdict
from smithers.sql.rows import Json


class Result:
    """A value whose fields are its JSON."""

    __slots__ = ()

    def to_json(self) -> Json:
        """Give the object that --json prints."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, slots=True)
class RunSummary(Result):
    """A run in a listing; `run` holds the columns of runs and run_state, `nodes` counts states."""

    run: Json
    verdict: Verdict
    nodes: dict[str, int]
    unhealthy: tuple[Unhealthy, ...] = ()

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.run["run_id"])

    @property
    def status(self) -> str:
        """The stored state."""
        return str(self.run["status"])

    def to_json(self) -> Json:
        """Give the columns with the verdict beside them."""
        return {
            **self.run,
            "verdict": self.verdict.value,
            "unhealthy": [asdict(each) for each in self.unhealthy],
            "nodes": self.nodes,
        }


@dataclass(frozen=True, slots=True)
class RunStatus(Result):
    """A run from close by; `nodes` are rows of node_view. Timestamps only, so that two looks at
    a run that has ended are equal.
    """

    run: Json
    verdict: Verdict
    blocked: tuple[Blocked, ...]
    unhealthy: tuple[Unhealthy, ...]
    nodes: list[Json]
    owner: Json | None = None
    processes: list[Json] = field(default_factory=list[Json])

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.run["run_id"])

    @property
    def status(self) -> str:
        """The stored state."""
        return str(self.run["status"])

    def to_json(self) -> Json:
        """Give the columns with what is derived beside them."""
        return {
            **self.run,
            "verdict": self.verdict.value,
            "blocked": [asdict(each) for each in self.blocked],
            "unhealthy": [asdict(each) for each in self.unhealthy],
            "nodes": self.nodes,
        }


@dataclass(frozen=True, slots=True)
class Reason(Result):
    """One answer to why a run is where it is; `tail` is the end of a traceback or output."""

    kind: str
    message: str
    node_id: str | None = None
    iteration: int | None = None
    attempt: int | None = None
    code: str | None = None
    tail: str | None = None
    since: str | None = None
    due_at: str | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Why(Result):
    """Why a run is where it is, and the next command."""

    run_id: str
    status: str
    verdict: Verdict
    ended: bool
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Admitted(Result):
    """A run that exists now, or that a resume has found. `attached` says whose it is."""

    run_id: str
    created: bool
    status: str
    workflow: str
    path: str
    resumed: bool = False
    attached: str | None = None


@dataclass(frozen=True, slots=True)
class Engine(Result):
    """A detached engine that was started."""

    pid: int
    log: str


@dataclass(frozen=True, slots=True)
class Outcome(Result):
    """What a stored function answered, and the engine that was started to go on with the run."""

    answer: Json
    engine: Engine | None = None

    def to_json(self) -> Json:
        """Give the answer; with `engine` if one was started."""
        return {**self.answer, "engine": self.engine.to_json()} if self.engine else self.answer


@dataclass(frozen=True, slots=True)
class NodeOutput(Result):
    """The value of one finished node."""

    node_id: str
    iteration: int
    kind: str
    attempt: int
    value: Any


@dataclass(frozen=True, slots=True)
class EventLine(Result):
    """One entry of a run's log."""

    seq: int
    at: datetime
    type: str
    node_id: str | None
    iteration: int | None
    attempt: int | None
    payload: Json

    def to_json(self) -> Json:
        """Give the row, its time in ISO 8601."""
        return {**asdict(self), "at": self.at.isoformat()}


@dataclass(frozen=True, slots=True)
class Violation(Result):
    """An invariant that the rows break, and where."""

    invariant: str
    run_id: str | None
    node_id: str | None
    iteration: int | None
    detail: str
