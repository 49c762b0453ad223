"""The states of runs, nodes and attempts, and the moves between them that are legal.

The SQL checks hold the same values; a test compares them.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from typing import Final


class RunStatus(StrEnum):
    """The stored state of a run."""

    RUNNING = "running"
    WAITING_APPROVAL = "waiting-approval"
    WAITING_EVENT = "waiting-event"
    WAITING_QUOTA = "waiting-quota"
    WAITING_TIMER = "waiting-timer"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CONTINUED = "continued"


class NodeState(StrEnum):
    """The stored state of a node; `in-progress` is shown for a ready node with a lease."""

    PENDING = "pending"
    READY = "ready"
    FINISHED = "finished"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    WAITING_APPROVAL = "waiting-approval"
    WAITING_EVENT = "waiting-event"
    WAITING_TIMER = "waiting-timer"
    WAITING_QUOTA = "waiting-quota"


class AttemptState(StrEnum):
    """The state of one try of a task."""

    IN_PROGRESS = "in-progress"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    RELEASED = "released"
    PARKED = "parked"


class Origin(StrEnum):
    """Where an accepted output came from."""

    WORKER = "worker"
    STATIC = "static"
    CACHE = "cache"
    FORK = "fork"
    MANUAL = "manual"


class NodeKind(StrEnum):
    """The kinds of node that have a row."""

    AGENT = "agent"
    COMPUTE = "compute"
    STATIC = "static"
    APPROVAL = "approval"
    HUMAN = "human"
    EVENT = "event"
    TIMER = "timer"
    LOOP = "loop"


TASK_KINDS: Final = frozenset({NodeKind.AGENT, NodeKind.COMPUTE, NodeKind.STATIC})

# In the order in which they name the status of a run that waits for several.
WAITING_NODES: Final = (
    NodeState.WAITING_APPROVAL,
    NodeState.WAITING_EVENT,
    NodeState.WAITING_QUOTA,
    NodeState.WAITING_TIMER,
)
WAITING_RUNS: Final = tuple(RunStatus(state) for state in WAITING_NODES)
ENDED_RUNS: Final = frozenset(
    {RunStatus.FINISHED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.CONTINUED}
)

RunMoves = frozenset[tuple[RunStatus, RunStatus]]
NodeMoves = frozenset[tuple[NodeState, NodeState]]
AttemptMoves = frozenset[tuple[AttemptState, AttemptState]]

_PARKED_RUNS: Final = (*WAITING_RUNS, RunStatus.PAUSED)

RUN_MOVES: Final[RunMoves] = frozenset(
    {
        *((RunStatus.RUNNING, status) for status in RunStatus if status != RunStatus.RUNNING),
        # A decision, signal, due time or resume wakes; so does the resume of an ended run.
        *((status, RunStatus.RUNNING) for status in _PARKED_RUNS),
        (RunStatus.FINISHED, RunStatus.RUNNING),
        (RunStatus.FAILED, RunStatus.RUNNING),
        (RunStatus.CANCELLED, RunStatus.RUNNING),
        *product(WAITING_RUNS, (RunStatus.PAUSED, RunStatus.CANCELLED, RunStatus.FAILED)),
        (RunStatus.PAUSED, RunStatus.CANCELLED),
        (RunStatus.PAUSED, RunStatus.FAILED),
    }
)

_PENDING: Final = NodeState.PENDING
_READY: Final = NodeState.READY
_ENDED_NODES: Final = (
    NodeState.FINISHED,
    NodeState.FAILED,
    NodeState.SKIPPED,
    NodeState.CANCELLED,
)

NODE_MOVES: Final[NodeMoves] = frozenset(
    {
        (_PENDING, _READY),
        (_PENDING, NodeState.WAITING_APPROVAL),
        (_PENDING, NodeState.WAITING_EVENT),
        (_PENDING, NodeState.WAITING_TIMER),
        # Statics, loops and waits that are satisfied at once end without being ready.
        *((_PENDING, ended) for ended in _ENDED_NODES),
        # Pause, retry, release and reclaim give a node back.
        (_READY, _PENDING),
        (_READY, NodeState.FINISHED),
        (_READY, NodeState.FAILED),
        (_READY, NodeState.CANCELLED),
        (_READY, NodeState.WAITING_QUOTA),
        *product(WAITING_NODES, _ENDED_NODES),
        *((waiting, _PENDING) for waiting in WAITING_NODES),
        # Resume, retry-task, and a cancelled node that is mounted again.
        *((ended, _PENDING) for ended in _ENDED_NODES),
    }
)

ATTEMPT_MOVES: Final[AttemptMoves] = frozenset(
    (AttemptState.IN_PROGRESS, state) for state in AttemptState if state != AttemptState.IN_PROGRESS
)
