"""What a plan decides, as values: the scheduler commits them, `why` explains them, tests
compare them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from smithers.workflow.keys import NodeKey
from smithers.workflow.states import NodeState, RunStatus

Error = Mapping[str, object]


class Move(NamedTuple):
    """A node goes from the state that was loaded to another."""

    key: NodeKey
    old: NodeState
    new: NodeState
    error: Error | None = None
    due_in: float | None = None
    detail: Mapping[str, object] | None = None


class Ready(NamedTuple):
    """A task may be claimed."""

    key: NodeKey
    queue: str
    priority: int
    alone: bool


class Static(NamedTuple):
    """A task whose value is known is finished by the frame itself."""

    key: NodeKey
    output: Mapping[str, object]


class ApprovalRequest(NamedTuple):
    """A person is asked for a decision; the digest is of what is shown."""

    key: NodeKey
    title: str
    summary: str
    timeout: float | None
    digest: str


class HumanRequest(NamedTuple):
    """A person is asked for an answer."""

    key: NodeKey
    prompt: str
    schema: Mapping[str, object]
    timeout: float | None


class TimerStart(NamedTuple):
    """A timer begins."""

    key: NodeKey
    seconds: float | None
    until: datetime | None


class Consume(NamedTuple):
    """A wait takes a signal."""

    key: NodeKey
    name: str
    signal_seq: int
    payload: object


class Blocked(NamedTuple):
    """What a node waits for, and the command that unblocks it."""

    reason: str
    key: NodeKey
    message: str
    command: str | None = None
    due_at: datetime | None = None

    def to_json(self) -> dict[str, object]:
        """Give the entry as `status` shows it."""
        return {
            "reason": self.reason,
            "node_id": self.key[0],
            "iteration": self.key[1],
            "message": self.message,
            "command": self.command,
            "due_at": self.due_at and self.due_at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a run.

    Either it *settles*: facts that the frame itself makes, after which the tree must be
    rendered again; or it acts on the world, and `status` holds.
    """

    status: RunStatus = RunStatus.RUNNING
    moves: tuple[Move, ...] = ()
    statics: tuple[Static, ...] = ()
    consumed: tuple[Consume, ...] = ()
    advanced: tuple[NodeKey, ...] = ()
    ready: tuple[Ready, ...] = ()
    approvals: tuple[ApprovalRequest, ...] = ()
    humans: tuple[HumanRequest, ...] = ()
    timers: tuple[TimerStart, ...] = ()
    error: Error | None = None
    blocked: tuple[Blocked, ...] = ()
    settles: bool = False
    stopped: bool = False
    """A pause or cancel request stands: nothing was looked at."""
