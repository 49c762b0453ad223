"""What a frame settles by itself: statics, skips, answered waits, passes of loops."""

from __future__ import annotations

from typing import Final

from smithers.workflow.decision import Consume, Decision, Move, Static
from smithers.workflow.errors import LOOP_EXHAUSTED
from smithers.workflow.facts import Facts
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import WAITING_NODES, NodeState
from smithers.workflow.tree import Leaf, LoopPass, Tree
from smithers.workflow.turns import Inbox, Settled, inbox_of, settled, state_of
from smithers.workflow.walk import Turns

AGAIN: Final = {"reason": "again"}
_PENDING: Final = NodeState.PENDING
_CANCELLED: Final = NodeState.CANCELLED


def settle_turns(tree: Tree, facts: Facts, turns: Turns) -> Decision | None:
    """Give the decision of a pass that settles something; None when nothing is left."""
    inbox = inbox_of(facts)
    found: list[Settled] = []
    for leaf in tree.leaves:
        found += _leaf(leaf, facts, turns, inbox)
    found += [_judge(loop) for loop in turns.ended]
    found += [
        Move(loop.key, _CANCELLED, _PENDING)
        for loop in tree.loops
        if state_of(facts.rows.get(loop.key)) is _CANCELLED
    ]
    if not found:
        return None
    moves = tuple(each for each in found if isinstance(each, Move))
    return Decision(
        moves=moves,
        statics=tuple(each for each in found if isinstance(each, Static)),
        consumed=tuple(each for each in found if isinstance(each, Consume)),
        advanced=tuple((each.key[0], each.key[1] + 1) for each in moves if each.detail == AGAIN),
        settles=True,
    )


def _leaf(leaf: Leaf, facts: Facts, turns: Turns, inbox: Inbox) -> list[Settled]:
    state = state_of(facts.rows.get(leaf.key))
    if state is _CANCELLED:  # it was unmounted, and is back
        return [Move(leaf.key, state, _PENDING)]
    if state is NodeState.WAITING_QUOTA:
        return _quota(leaf.key, facts)
    if state in WAITING_NODES or leaf.key in turns.open:
        return settled(leaf, facts, inbox)
    return []


def _quota(key: NodeKey, facts: Facts) -> list[Settled]:
    row = facts.rows[key]
    due = row.due_at is not None and row.due_at <= facts.now
    return [Move(key, row.state, _PENDING)] if due else []


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
