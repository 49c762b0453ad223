"""The planner: a pure function from a tree and the rows of a run to a decision."""

from __future__ import annotations

from dataclasses import dataclass, field

from smithers.workflow.canonical import as_object
from smithers.workflow.decision import (
    ApprovalRequest,
    Consume,
    Decision,
    HumanRequest,
    Move,
    Ready,
    Static,
    TimerStart,
)
from smithers.workflow.errors import LOOP_EXHAUSTED
from smithers.workflow.facts import Facts
from smithers.workflow.keys import NodeKey
from smithers.workflow.outlook import blocked_by, status_of, stuck
from smithers.workflow.snapshot import NodeRow
from smithers.workflow.states import WAITING_NODES, NodeState, RunStatus
from smithers.workflow.tasks import Task
from smithers.workflow.tree import Leaf, LoopPass, Tree
from smithers.workflow.turns import outward, settled, state_of
from smithers.workflow.walk import Turns, failing, take_turns

_PENDING = NodeState.PENDING
_READY = NodeState.READY
_CANCELLED = NodeState.CANCELLED


def plan(tree: Tree, facts: Facts) -> Decision:
    """Decide what becomes of a run.

    A finished task is never made ready again; the order of rows has no meaning; planning
    again after the decision was applied gives nothing new.
    """
    stopped = stopping(facts)
    if stopped is not None:
        return stopped
    failures = failing(tree, facts)
    if failures:
        return _wind_down(tree, facts, failures)
    turns = take_turns(tree, facts)
    return _settle(tree, facts, turns) or _act(tree, facts, turns)


def stopping(facts: Facts) -> Decision | None:
    """Give the decision of a run with a pause or cancel request, which needs no tree."""
    run = facts.run
    if not (run.pausing or run.cancelling):
        return None
    if any(row.in_progress for row in facts.rows.values()):
        return Decision(status=RunStatus.RUNNING, stopped=True)
    status = RunStatus.CANCELLED if run.cancelling else RunStatus.PAUSED
    return Decision(status=status, stopped=True)


def _wind_down(tree: Tree, facts: Facts, failures: list[Leaf | LoopPass]) -> Decision:
    """After a failure nothing new begins; what is in flight ends, then the run fails."""
    mounted = {leaf.key for leaf in tree.leaves}
    moves = tuple(
        Move(key, _READY, _PENDING if key in mounted else _CANCELLED)
        for key, row in sorted(facts.rows.items())
        if row.state is _READY and not row.in_progress
    )
    in_flight = any(row.in_progress for row in facts.rows.values())
    status = RunStatus.RUNNING if in_flight else RunStatus.FAILED
    return Decision(status=status, moves=moves, error=_first_error(facts, failures))


def _first_error(facts: Facts, failures: list[Leaf | LoopPass]) -> dict[str, object]:
    """Give the run's error: the one that it has already, else that of the first in the tree."""
    known = facts.run.error or {}
    details = as_object(known.get("details")) or {}
    if (details.get("node_id"), details.get("iteration")) in [item.key for item in failures]:
        return dict(known)
    key = failures[0].key
    row = facts.rows[key]
    error = row.error or {}
    message = error.get("message") or "it failed"
    return {
        "code": str(error.get("code") or "TASK_FAILED"),
        "message": f"{key[0]!r} (iteration {key[1]}) failed: {message}",
        "details": {"node_id": key[0], "iteration": key[1], "error": dict(error)},
        "hint": error.get("hint"),
    }


def _settle(tree: Tree, facts: Facts, turns: Turns) -> Decision | None:
    moves: list[Move] = []
    statics: list[Static] = []
    consumed: list[Consume] = []
    taken: set[int] = set()
    for leaf in tree.leaves:
        state = state_of(facts.rows.get(leaf.key))
        if state is _CANCELLED:  # it was unmounted, and is back
            moves.append(Move(leaf.key, state, _PENDING))
        elif state is NodeState.WAITING_QUOTA:
            moves += _quota(leaf.key, facts)
        elif state in WAITING_NODES or leaf.key in turns.open:
            for each in settled(leaf, facts, taken):
                match each:
                    case Move():
                        moves.append(each)
                    case Static():
                        statics.append(each)
                    case Consume():
                        consumed.append(each)
    advanced: list[NodeKey] = []
    for loop in turns.ended:
        moves.append(_judge(loop))
        if moves[-1].detail == AGAIN:
            advanced.append((loop.key[0], loop.key[1] + 1))
    moves += _revived_loops(tree, facts)
    if not (moves or statics):
        return None
    return Decision(
        moves=tuple(moves),
        statics=tuple(statics),
        consumed=tuple(consumed),
        advanced=tuple(advanced),
        settles=True,
    )


AGAIN = {"reason": "again"}


def _judge(loop: LoopPass) -> Move:
    """Decide about a loop whose pass is done."""
    node, (_, iteration) = loop.node, loop.key
    if node.until:
        return Move(loop.key, _PENDING, NodeState.FINISHED, detail={"reason": "until"})
    if iteration + 1 < node.max_iterations:
        return Move(loop.key, _PENDING, NodeState.FINISHED, detail=AGAIN)
    if node.on_max == "return-last":
        detail = {"reason": "max-iterations", "exhausted": True}
        return Move(loop.key, _PENDING, NodeState.FINISHED, detail=detail)
    error = {
        "code": LOOP_EXHAUSTED,
        "message": f"until is still false after {node.max_iterations} passes",
        "details": {"node_id": loop.key[0], "iteration": iteration},
        "hint": "Raise max_iterations, or let it end as it is: on_max='return-last'.",
    }
    return Move(loop.key, _PENDING, NodeState.FAILED, error)


def _quota(key: NodeKey, facts: Facts) -> list[Move]:
    row = facts.rows[key]
    due = row.due_at is not None and row.due_at <= facts.now
    return [Move(key, row.state, _PENDING)] if due else []


def _revived_loops(tree: Tree, facts: Facts) -> list[Move]:
    return [
        Move(loop.key, _CANCELLED, _PENDING)
        for loop in tree.loops
        if state_of(facts.rows.get(loop.key)) is _CANCELLED
    ]


@dataclass(slots=True)
class _Acts:
    """What a run asks of the world; filled in document order."""

    moves: list[Move] = field(default_factory=list[Move])
    approvals: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])
    humans: list[HumanRequest] = field(default_factory=list[HumanRequest])
    timers: list[TimerStart] = field(default_factory=list[TimerStart])
    candidates: list[Leaf] = field(default_factory=list[Leaf])

    def take(self, leaf: Leaf, facts: Facts) -> None:
        """File what a node needs."""
        needed = outward(leaf, facts)
        match needed:
            case Leaf():
                self.candidates.append(needed)
            case Move():
                self.moves.append(needed)
            case ApprovalRequest():
                self.approvals.append(needed)
                self.moves.append(Move(leaf.key, _PENDING, NodeState.WAITING_APPROVAL))
            case HumanRequest():
                self.humans.append(needed)
                self.moves.append(Move(leaf.key, _PENDING, NodeState.WAITING_APPROVAL))
            case TimerStart():
                self.timers.append(needed)
                self.moves.append(Move(leaf.key, _PENDING, NodeState.WAITING_TIMER))


def _act(tree: Tree, facts: Facts, turns: Turns) -> Decision:
    acts = _Acts()
    for leaf in tree.leaves:
        if leaf.key in turns.open:
            row = facts.rows.get(leaf.key)
            if row is None or row.due_at is None or row.due_at <= facts.now:
                acts.take(leaf, facts)
    acts.moves += _unmounted(tree, facts)
    ready = _choose(tree, facts, acts)
    states = {move.key: move.new for move in acts.moves} | {each.key: _READY for each in ready}
    status = status_of(tree, facts, states)
    error = stuck(tree, facts, turns) if status is RunStatus.FAILED else None
    return Decision(
        status=status,
        moves=tuple(acts.moves),
        ready=ready,
        approvals=tuple(acts.approvals),
        humans=tuple(acts.humans),
        timers=tuple(acts.timers),
        error=error,
        blocked=blocked_by(tree, facts, states),
    )


def _unmounted(tree: Tree, facts: Facts) -> list[Move]:
    """Cancel what waits or may be claimed, but isn't in the tree any more."""
    mounted = {leaf.key for leaf in tree.leaves}
    gone = (row for key, row in sorted(facts.rows.items()) if key not in mounted)
    return [Move(row.key, row.state, _CANCELLED) for row in gone if _cancellable(row)]


def _cancellable(row: NodeRow) -> bool:
    return (row.state is _READY and not row.in_progress) or row.state in WAITING_NODES


def _choose(tree: Tree, facts: Facts, acts: _Acts) -> tuple[Ready, ...]:
    """Give the tasks for which slots are free: higher priority first, then document order."""
    if not acts.candidates:
        return ()
    used = [0] * len(tree.caps)
    for leaf in tree.leaves:
        row = facts.rows.get(leaf.key) if leaf.caps else None
        if row is not None and row.state is _READY:
            for cap in leaf.caps:
                used[cap] += 1
    cancelled = {move.key for move in acts.moves if move.old is _READY}
    running = sum(row.state is _READY for row in facts.rows.values()) - len(cancelled)
    limit = facts.run.max_concurrency
    chosen: list[Ready] = []
    for leaf in sorted(acts.candidates, key=_urgency):
        if limit is not None and running + len(chosen) >= limit:
            break
        if all(used[cap] < tree.caps[cap] for cap in leaf.caps):
            for cap in leaf.caps:
                used[cap] += 1
            chosen.append(_ready(leaf, facts))
    return tuple(chosen)


def _urgency(leaf: Leaf) -> int:
    return -leaf.node.priority if isinstance(leaf.node, Task) else 0


def _ready(leaf: Leaf, facts: Facts) -> Ready:
    task, row = leaf.node, facts.rows.get(leaf.key)
    assert isinstance(task, Task)
    return Ready(leaf.key, task.queue, task.priority, row is not None and row.abandoned > 0)
