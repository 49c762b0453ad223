"""What finished nodes have for their readers: the values that fill the `needs` of a task."""

from __future__ import annotations

from smithers.testing.rows import key_of
from smithers.testing.store import RunStore
from smithers.testing.stored import Json
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import NodeKind, NodeState


def needs_of(store: RunStore, descriptor: Json) -> dict[str, object]:
    """Give the stored value for each parameter that a task's needs fill; None without one."""
    return {
        need["param"]: value_of(store, key_of(need), NodeKind(need["kind"]))
        for need in descriptor.get("needs") or ()
    }


def value_of(store: RunStore, key: NodeKey, kind: NodeKind) -> object:
    """Give what a node has for its readers, as `read_output` does; None if nothing."""
    match kind:
        case NodeKind.APPROVAL:
            return _decision(store, key)
        case NodeKind.HUMAN:
            human = store.humans.get(key)
            return human["response"] if human and human["status"] == "answered" else None
        case NodeKind.EVENT:
            taken = [signal for signal in store.signals if signal["taken"] == list(key)]
            return taken[0]["payload"] if taken else None
        case NodeKind.TIMER:
            timer = store.timers.get(key)
            return {"due_at": timer["due_at"]} if timer and timer["fired"] else None
        case _:
            row = store.nodes.get(key)
            return store.outputs.get(key) if row and row.state is NodeState.FINISHED else None


def _decision(store: RunStore, key: NodeKey) -> object:
    row = store.approvals.get(key)
    if row is None or row["decision"] is None:
        return None
    return {
        "approved": row["decision"] == "approved",
        "note": row["note"],
        "decided_by": row["decided_by"],
    }
