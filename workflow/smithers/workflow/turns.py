"""What becomes of one node whose turn it is, or that waits: the rules for each kind."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import BaseModel, ValidationError

from smithers.workflow.canonical import as_object, canonical, digest
from smithers.workflow.context import event_fields
from smithers.workflow.decision import (
    ApprovalRequest,
    Consume,
    HumanRequest,
    Move,
    Static,
    TimerStart,
)
from smithers.workflow.errors import ANSWER_INVALID, APPROVAL_DENIED, WAIT_EXPIRED
from smithers.workflow.facts import Facts
from smithers.workflow.keys import NodeKey
from smithers.workflow.models import in_words, load, problems
from smithers.workflow.nodes import Ref
from smithers.workflow.shapes import schema_of
from smithers.workflow.snapshot import NodeRow, SignalRow
from smithers.workflow.states import NodeState
from smithers.workflow.tasks import Task
from smithers.workflow.tree import Leaf
from smithers.workflow.waits import Approval, HumanTask, Timer, WaitForEvent

Candidate: TypeAlias = Leaf
"""A task that may be made ready if a slot is free."""

Listen: TypeAlias = Move
"""A wait for a signal begins."""

Inbox: TypeAlias = dict[str, list[SignalRow]]
"""The signals that nobody has taken, by name, each name's in their order."""

Settled: TypeAlias = Move | Static | Consume
Outward: TypeAlias = ApprovalRequest | HumanRequest | TimerStart


def state_of(row: NodeRow | None) -> NodeState:
    """Give a node's state; one without a row is about to be mounted."""
    return NodeState.PENDING if row is None else row.state


def inbox_of(facts: Facts) -> Inbox:
    """Sort the signals that nobody has taken by name."""
    inbox: Inbox = {}
    for signal in facts.signals:
        inbox.setdefault(signal.name, []).append(signal)
    return inbox


def settled(leaf: Leaf, facts: Facts, inbox: Inbox) -> list[Settled]:
    """Give what the frame itself can settle about a node whose turn it is, or that waits.

    A signal that the node takes leaves the inbox.
    """
    row, node = facts.rows.get(leaf.key), leaf.node
    state = state_of(row)
    if state is NodeState.PENDING and node.skip_if:
        return [Move(leaf.key, state, NodeState.SKIPPED)]
    if row is not None and state is NodeState.PENDING and row.due_at and row.due_at > facts.now:
        return []
    match node:
        case Task():
            return _task(leaf, node, state, facts)
        case Approval():
            return _decided(leaf.key, state, NodeState.FINISHED, facts)
        case HumanTask():
            return _answered(leaf.key, state, node, facts)
        case Timer():
            timer = facts.timers.get(leaf.key)
            fired = timer is not None and timer.fired
            return [Move(leaf.key, state, NodeState.FINISHED)] if fired else []
        case WaitForEvent():
            return _signalled(leaf.key, state, node, facts, inbox)
        case _:
            return []


def outward(leaf: Leaf, facts: Facts) -> Outward | Move | Candidate:
    """Give what a pending node whose turn it is needs from the world."""
    key, node = leaf.key, leaf.node
    output = node.output
    match node:
        case Task() if node.policy.needs_approval is not None and not _approved(key, facts):
            return _request(key, node.policy.needs_approval, _summary(node), None)
        case Approval():
            return _request(key, node.title, node.summary, node.timeout)
        case HumanTask():
            return HumanRequest(key, node.prompt, schema_of(output), node.timeout)
        case Timer():
            return TimerStart(key, node.seconds, node.until)
        case WaitForEvent():
            detail = {"name": node.name, "timeout": node.timeout}
            new = NodeState.WAITING_EVENT
            return Move(key, NodeState.PENDING, new, due_in=node.timeout, detail=detail)
        case _:
            return leaf


def misfits(model: type[BaseModel], payload: object) -> str | None:
    """Say what keeps a payload from being this model; None if it fits."""
    fields = event_fields(model, payload)
    body = as_object(fields)
    if body is None:
        return f"it is a {type(fields).__name__}, not an object"
    try:
        load(model, body)
    except ValidationError as error:
        return in_words(problems(error))
    return None


def _task(leaf: Leaf, task: Task[BaseModel], state: NodeState, facts: Facts) -> list[Settled]:
    if task.policy.needs_approval is not None:
        verdict = _decided(leaf.key, state, NodeState.PENDING, facts)
        if verdict or not _approved(leaf.key, facts):
            return verdict
    if task.value is not None and state is NodeState.PENDING:
        return [Static(leaf.key, task.value)]
    return []


def _decided(key: NodeKey, state: NodeState, then: NodeState, facts: Facts) -> list[Settled]:
    row = facts.approvals.get(key)
    if row is None:
        return []
    if row.decision == "approved":
        return [] if state is then else [Move(key, state, then)]
    if row.decision is not None:
        by = f" by {row.decided_by}" if row.decided_by else ""
        note = f": {row.note}" if row.note else ""
        return [_failed(key, state, APPROVAL_DENIED, f"denied{by}{note}")]
    return [_failed(key, state, WAIT_EXPIRED, "nobody decided in time")] if row.expired else []


def _answered(
    key: NodeKey, state: NodeState, node: HumanTask[BaseModel], facts: Facts
) -> list[Settled]:
    row = facts.humans.get(key)
    if row is None or row.status == "pending":
        return []
    if row.status != "answered":
        return [_failed(key, state, WAIT_EXPIRED, "nobody answered in time")]
    wrong = misfits(node.output, row.response)
    if wrong is None:
        return [Move(key, state, NodeState.FINISHED)]
    return [_failed(key, state, ANSWER_INVALID, f"the answer doesn't fit: {wrong}")]


def _signalled(
    key: NodeKey, state: NodeState, node: WaitForEvent[BaseModel], facts: Facts, inbox: Inbox
) -> list[Settled]:
    finish = Move(key, state, NodeState.FINISHED)
    if key in facts.events:
        return [finish]
    signal = _take(node, inbox)
    if signal is not None:
        return [finish, Consume(key, node.name, signal.seq, signal.payload)]
    row = facts.rows.get(key)
    if row is not None and state is NodeState.WAITING_EVENT and _expired(row, facts):
        return [_failed(key, state, WAIT_EXPIRED, f"no signal {node.name!r} came in time")]
    return []


def _take(node: WaitForEvent[BaseModel], inbox: Inbox) -> SignalRow | None:
    """Take the first signal of the wait's name that fits its model."""
    signals = inbox.get(node.name, [])
    for index, signal in enumerate(signals):
        if misfits(node.output, signal.payload) is None:
            return signals.pop(index)
    return None


def _expired(row: NodeRow, facts: Facts) -> bool:
    """Say whether a wait with a timeout is over: firing a due time removes it."""
    if row.due_at is not None:
        return row.due_at <= facts.now
    return row.detail is not None and row.detail.get("timeout") is not None


def _approved(key: NodeKey, facts: Facts) -> bool:
    row = facts.approvals.get(key)
    return row is not None and row.decision == "approved"


def _request(key: NodeKey, title: str, summary: str, timeout: float | None) -> ApprovalRequest:
    shown = canonical({"node": list(key), "title": title, "summary": summary}, "an approval")
    return ApprovalRequest(key, title, summary, timeout, digest(shown))


def _summary(node: Ref[BaseModel]) -> str:
    return node.label


def _failed(key: NodeKey, old: NodeState, code: str, message: str) -> Move:
    error = {
        "code": code,
        "message": message,
        "details": {"node_id": key[0], "iteration": key[1]},
        "hint": None,
    }
    return Move(key, old, NodeState.FAILED, error)
