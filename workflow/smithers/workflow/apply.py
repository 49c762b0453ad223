"""Apply a decision to the facts, in memory: what the database will hold."""

from __future__ import annotations

from datetime import timedelta

from smithers.workflow.decision import Decision
from smithers.workflow.facts import Facts
from smithers.workflow.keys import NodeKey
from smithers.workflow.snapshot import NodeRow
from smithers.workflow.states import NodeKind, NodeState
from smithers.workflow.tree import Tree


def apply(tree: Tree, facts: Facts, decision: Decision) -> Facts:
    """Give the facts after a decision."""
    rows = dict(facts.rows)
    kinds: dict[NodeKey, NodeKind] = {leaf.key: leaf.node.kind for leaf in tree.leaves}

    def change(key: NodeKey, state: NodeState) -> NodeRow:
        row = rows.get(key) or NodeRow(*key, NodeState.PENDING, kinds.get(key, NodeKind.LOOP))
        return row._replace(state=state, due_at=None)

    for move in decision.moves:
        row = change(move.key, move.new)
        due_at = None if move.due_in is None else facts.now + timedelta(seconds=move.due_in)
        detail = move.detail or row.detail
        rows[move.key] = row._replace(error=move.error, detail=detail, due_at=due_at)
    for static in decision.statics:
        rows[static.key] = change(static.key, NodeState.FINISHED)
    for ready in decision.ready:
        rows[ready.key] = change(ready.key, NodeState.READY)
    for key in decision.advanced:
        rows[key] = NodeRow(*key, NodeState.PENDING, NodeKind.LOOP)
    taken = {each.signal_seq for each in decision.consumed}
    return facts.with_rows(
        rows,
        {**facts.outputs, **{each.key: each.output for each in decision.statics}},
        {**facts.events, **{each.key: each.payload for each in decision.consumed}},
        tuple(each for each in facts.signals if each.seq not in taken),
    )
