"""What a decision means for the run: its status, what blocks it, and how it is stuck."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from pydantic import BaseModel

from smithers.workflow.decision import Blocked
from smithers.workflow.errors import DEPENDENCY_MISSING, RUN_STUCK
from smithers.workflow.facts import Facts
from smithers.workflow.keys import NodeKey
from smithers.workflow.nodes import Ref
from smithers.workflow.snapshot import NodeRow
from smithers.workflow.states import WAITING_NODES, NodeState, RunStatus
from smithers.workflow.tasks import Task
from smithers.workflow.tree import Dep, Leaf, Tree
from smithers.workflow.turns import misfits, state_of
from smithers.workflow.waits import Approval, HumanTask, WaitForEvent
from smithers.workflow.walk import Turns, is_done

States = Mapping[NodeKey, NodeState]
SHOWN = 50


def status_of(tree: Tree, facts: Facts, changed: States) -> RunStatus:
    """Give a run's status after its nodes have changed; FAILED means that it is stuck."""
    waiting: set[NodeState] = set()
    done = True
    # What runs counts even if it isn't mounted any more.
    ready = NodeState.READY
    if any(changed.get(key, each.state) is ready for key, each in facts.rows.items()):
        return RunStatus.RUNNING
    for item in tree.items:
        row = facts.rows.get(item.key)
        state = changed.get(item.key, state_of(row))
        if state is NodeState.READY or _retries(row, state, facts):
            return RunStatus.RUNNING
        if state in WAITING_NODES:
            waiting.add(state)
        done = done and is_done(item, facts)
    for state in WAITING_NODES:
        if state in waiting:
            return RunStatus(state)
    return RunStatus.FINISHED if done else RunStatus.FAILED


def blocked_by(tree: Tree, facts: Facts, changed: States) -> tuple[Blocked, ...]:
    """List what mounted nodes wait for outside the run, with the command that ends it."""
    found: list[Blocked] = []
    for leaf in tree.leaves:
        row = facts.rows.get(leaf.key)
        state = changed.get(leaf.key, state_of(row))
        if state in WAITING_NODES:
            found.append(_waits(leaf, state, row, facts))
        elif _retries(row, state, facts) and row is not None:
            words = f"try {row.last_attempt + 1} begins at its due time"
            found.append(Blocked("retry", leaf.key, words, due_at=row.due_at))
    return tuple(found)


def stuck(tree: Tree, facts: Facts, turns: Turns) -> dict[str, object]:
    """Give the error of a run in which nothing can run and nothing is awaited."""
    entries = [_held(key, deps) for key, deps in turns.held.items()]
    empty = "has a pass without nodes, and until is false"
    entries += [_entry(loop.key, empty, [], []) for loop in turns.empty]
    open_ends = [f"{entry['node_id']!r} {entry['reason']}" for entry in entries]
    behind = [
        {"node_id": leaf.key[0], "iteration": leaf.key[1]}
        for leaf in tree.leaves
        if leaf.key not in turns.held and not is_done(leaf, facts)
    ]
    missing = any(entry["missing"] for entry in entries)
    words = "; ".join(open_ends[:5]) or "no node can begin"
    return {
        "code": DEPENDENCY_MISSING if missing else RUN_STUCK,
        "message": f"nothing can run and nothing is awaited: {words}",
        "details": {"blocked": entries[:SHOWN], "behind": behind[:SHOWN]},
        "hint": (
            "Mount what is missing, or remove it from needs= and depends_on=."
            if missing
            else "Look for nodes that wait for each other."
        ),
    }


def _held(key: NodeKey, deps: tuple[Dep, ...]) -> dict[str, object]:
    missing = [dep.id for dep in deps if not dep.mounted]
    names = ", ".join(repr(dep.id) for dep in deps)
    lacking = f", which isn't mounted: {', '.join(map(repr, missing))}" if missing else ""
    return _entry(key, f"waits for {names}{lacking}", [dep.id for dep in deps], missing)


def _entry(
    key: NodeKey, reason: str, waits_for: list[str], missing: list[str]
) -> dict[str, object]:
    return {
        "node_id": key[0],
        "iteration": key[1],
        "reason": reason,
        "waits_for": waits_for,
        "missing": missing,
    }


def _retries(row: NodeRow | None, state: NodeState, facts: Facts) -> bool:
    return (
        state is NodeState.PENDING
        and row is not None
        and row.due_at is not None
        and row.due_at > facts.now
    )


def _waits(leaf: Leaf, state: NodeState, row: NodeRow | None, facts: Facts) -> Blocked:
    run, node = facts.run.run_id, leaf.node
    at = f"--node {shlex.quote(leaf.key[0])} --iteration {leaf.key[1]}"
    due_at = row.due_at if row is not None else None
    if isinstance(node, HumanTask):
        command = f"smithers human answer {run} {at} --data '{{}}'"
        return Blocked("human", leaf.key, node.prompt, command, due_at)
    if isinstance(node, WaitForEvent):
        command = f"smithers signal {run} {shlex.quote(node.name)} --data '{{}}'"
        words = f"the signal {node.name!r}{_unfit(node, facts)}"
        return Blocked("event", leaf.key, words, command, due_at)
    match state:
        case NodeState.WAITING_APPROVAL:
            return Blocked(
                "approval", leaf.key, _title(node), f"smithers approve {run} {at}", due_at
            )
        case NodeState.WAITING_QUOTA:
            return Blocked("quota", leaf.key, "the agent's quota is used up", None, due_at)
        case _:
            timer = facts.timers.get(leaf.key)
            return Blocked("timer", leaf.key, "a timer", None, timer and timer.due_at)


def _title(node: Ref[BaseModel]) -> str:
    if isinstance(node, Approval):
        return node.title
    return (node.policy.needs_approval or "") if isinstance(node, Task) else ""


def _unfit(node: WaitForEvent[BaseModel], facts: Facts) -> str:
    """Tell of signals of the right name that don't fit the model."""
    wrong = [
        f"signal {each.seq} doesn't fit: {problem}"
        for each in facts.signals
        if each.name == node.name and (problem := misfits(node.output, each.payload)) is not None
    ]
    return f" ({'; '.join(wrong[:3])})" if wrong else ""
