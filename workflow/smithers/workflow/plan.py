"""The planner: a pure function from a tree and the rows of a run to a decision."""

from __future__ import annotations

from smithers.workflow.acting import act
from smithers.workflow.canonical import as_object
from smithers.workflow.decision import Decision, Move
from smithers.workflow.errors import TASK_FAILED
from smithers.workflow.facts import Facts
from smithers.workflow.settling import settle_turns
from smithers.workflow.states import NodeState, RunStatus
from smithers.workflow.tree import Leaf, LoopPass, Tree
from smithers.workflow.walk import failing, take_turns


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
    return settle_turns(tree, facts, turns) or act(tree, facts, turns)


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
        Move(key, NodeState.READY, NodeState.PENDING if key in mounted else NodeState.CANCELLED)
        for key, row in sorted(facts.rows.items())
        if row.state is NodeState.READY and not row.in_progress
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
        "code": str(error.get("code") or TASK_FAILED),
        "message": f"{key[0]!r} (iteration {key[1]}) failed: {message}",
        "details": {"node_id": key[0], "iteration": key[1], "error": dict(error)},
        "hint": error.get("hint"),
    }
