"""What a run asks of the world: tasks made ready within their caps, waits opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from smithers.workflow.decision import (
    ApprovalRequest,
    Decision,
    HumanRequest,
    Move,
    Ready,
    TimerStart,
)
from smithers.workflow.facts import Facts
from smithers.workflow.outlook import blocked_by, status_of, stuck
from smithers.workflow.snapshot import NodeRow
from smithers.workflow.states import WAITING_NODES, NodeState, RunStatus
from smithers.workflow.tasks import Task
from smithers.workflow.tree import Leaf, Tree
from smithers.workflow.turns import outward
from smithers.workflow.walk import Turns

_PENDING: Final = NodeState.PENDING
_READY: Final = NodeState.READY
_CANCELLED: Final = NodeState.CANCELLED


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


def act(tree: Tree, facts: Facts, turns: Turns) -> Decision:
    """Give the decision of a run in which nothing is left to settle."""
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
    return -leaf.node.policy.priority if isinstance(leaf.node, Task) else 0


def _ready(leaf: Leaf, facts: Facts) -> Ready:
    task, row = leaf.node, facts.rows.get(leaf.key)
    assert isinstance(task, Task)
    alone = row is not None and row.abandoned > 0
    return Ready(leaf.key, task.policy.queue, task.policy.priority, alone)
