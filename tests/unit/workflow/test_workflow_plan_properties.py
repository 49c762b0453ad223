"""Laws of the planner, and a brute-force oracle over random trees and rows."""

from __future__ import annotations

import os
import random
from datetime import timedelta

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from smithers.workflow import Sequence
from smithers.workflow.apply import apply
from smithers.workflow.decision import Decision
from smithers.workflow.extract import extract
from smithers.workflow.facts import Facts, facts_of
from smithers.workflow.plan import plan
from smithers.workflow.snapshot import (
    ApprovalRow,
    HumanRow,
    NodeRow,
    RunRow,
    SignalRow,
    Snapshot,
    TimerRow,
)
from smithers.workflow.states import NODE_MOVES, NodeKind, NodeState
from smithers.workflow.tree import Tree
from support.workflow_oracle import Cell, Expectation, Oracle, World
from support.workflow_trees import Bits, Key, Spec, build, describe, streams, tree, walk
from support.workflow_world import START

KINDS = {"task": NodeKind.COMPUTE, "loop": NodeKind.LOOP}
STATES = {
    "task": (
        *("pending",) * 6,
        *("finished",) * 9,
        "ready",
        "ready",
        "ready",
        "failed",
        "skipped",
        "cancelled",
        "waiting-quota",
    ),
    "static": ("pending", "pending", "finished", "skipped", "cancelled"),
    "approval": ("pending", "waiting-approval", "finished", "finished", "failed", "cancelled"),
    "human": ("pending", "waiting-approval", "finished", "finished", "failed", "cancelled"),
    "event": ("pending", "waiting-event", "finished", "finished", "failed", "cancelled"),
    "timer": ("pending", "waiting-timer", "finished", "finished", "cancelled"),
}
FACTS = {
    "approval": (None, "open", "approved", "denied", "expired"),
    "human": (None, "open", "good", "bad", "expired"),
    "event": (None, None, "consumed", "expired"),
    "timer": (None, "started", "fired"),
}

# `SMITHERS_TEST_EXAMPLES=20 pytest tests/unit/workflow` looks twenty times as long.
SCALE = int(os.environ.get("SMITHERS_TEST_EXAMPLES", "1"))
MANY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

trees = streams(100)
rows = streams(70)


def random_rows(root: Spec, data: bytes) -> World:
    """Give rows in which loops stand in some pass and nodes in some state."""
    bits = Bits(data)
    world = World(root, {}, cap=[None, None, None, 2][bits.next(4)])
    for spec, chain in walk(root):
        if spec.kind != "loop":
            continue
        name, current = world.loop_name(spec.id, chain), bits.next(spec.max)
        for k in range(current):
            world.cells[name, k] = Cell("finished")
        states = ("pending", "pending", "pending", "finished", "finished", "cancelled")
        world.cells[name, current] = Cell(states[bits.next(6)])
    for spec, chain in walk(root):
        if spec.is_leaf and bits.next(5) != 0:
            world.cells[world.key(spec, chain)] = random_cell(spec, bits)
    for number in range(bits.next(3)):
        # What an earlier render has mounted, and this one hasn't.
        world.cells[f"gone{number}", 0] = random_cell(Spec("task", "gone"), bits)
    for seq in range(bits.next(4)):
        world.signals.append((seq + 1, f"sig{bits.next(2)}"))
    return world


def random_cell(spec: Spec, bits: Bits) -> Cell:
    """Give a leaf's row and what the world has said about it."""
    choices = STATES[spec.kind]
    cell = Cell(choices[bits.next(len(choices))])
    cell.in_progress = cell.state == "ready" and bits.chance(2)
    if spec.kind == "task" and cell.state in ("pending", "waiting-quota"):
        cell.due = [0, 0, 1, -1][bits.next(4)]
    kind = "approval" if spec.ask else spec.kind
    if kind in FACTS:
        cell.fact = FACTS[kind][bits.next(len(FACTS[kind]))]
    if spec.ask and cell.state == "pending" and bits.chance(2):
        cell.state, cell.due = "waiting-approval", 0
    if cell.fact == "expired" and spec.kind == "event" and cell.state != "waiting-event":
        cell.fact = None
    return cell


def facts(world: World, order: int = 0) -> Facts:
    """Give the same rows as the planner takes them, in some order."""
    specs: dict[Key, Spec] = {world.key(spec, chain): spec for spec, chain in walk(world.root)}
    nodes: list[NodeRow] = []
    approvals: dict[Key, ApprovalRow] = {}
    humans: dict[Key, HumanRow] = {}
    timers: dict[Key, TimerRow] = {}
    events: dict[Key, object] = {}
    for key, cell in world.cells.items():
        spec = specs.get(key, Spec("task", "gone") if key[0].startswith("gone") else None)
        kind = KINDS.get(spec.kind) if spec else NodeKind.LOOP
        due_at = START + timedelta(seconds=cell.due) if cell.due else None
        expired = cell.fact == "expired" and spec is not None and spec.kind == "event"
        detail = {"timeout": 60} if expired else None
        kind = kind or NodeKind(spec.kind if spec else "loop")
        state = NodeState(cell.state)
        row = NodeRow(*key, state, kind, due_at=due_at, in_progress=cell.in_progress, detail=detail)
        nodes.append(row)
        match (spec.kind if spec and not spec.ask else "approval" if spec else "", cell.fact):
            case (_, None):
                pass
            case ("approval", "expired"):
                approvals[key] = ApprovalRow(expired=True)
            case ("approval", fact):
                approvals[key] = ApprovalRow(None if fact == "open" else fact)
            case ("human", "open"):
                humans[key] = HumanRow("pending")
            case ("human", "expired"):
                humans[key] = HumanRow("expired")
            case ("human", fact):
                answer: object = {"text": "x"} if fact == "good" else {"wrong": 1}
                humans[key] = HumanRow("answered", answer)
            case ("timer", fact):
                timers[key] = TimerRow(START, fact == "fired")
            case ("event", "consumed"):
                events[key] = None
            case _:
                pass
    signals = tuple(SignalRow(seq, name) for seq, name in world.signals)
    random.Random(order).shuffle(nodes)
    run = RunRow("r1", "w", {}, max_concurrency=world.cap)
    snapshot = Snapshot(START, run, tuple(nodes), {}, approvals, humans, events, signals, timers)
    return facts_of(snapshot, {})


def tree_of(root: Spec, world: World, known: Facts) -> Tree:
    """Render by hand."""
    passes = {s.id: world.current(s.id, chain) for s, chain in walk(root) if s.kind == "loop"}
    node = build(root, passes, {})
    assert isinstance(node, Sequence)
    return extract(node, known)


def seen(decision: Decision) -> Expectation:
    """Give a decision in the oracle's terms."""
    return Expectation(
        status=decision.status.value,
        settles=decision.settles,
        moves={(move.key, move.old.value, move.new.value) for move in decision.moves},
        statics={each.key for each in decision.statics},
        consumed={each.key: each.signal_seq for each in decision.consumed},
        advanced=set(decision.advanced),
        ready=[each.key for each in decision.ready],
    )


@given(trees, rows)
@settings(MANY, max_examples=3000 * SCALE)
def test_the_planner_agrees_with_the_oracle(shape: bytes, states: bytes) -> None:
    root = tree(shape)
    world = random_rows(root, states)
    note(describe(root))
    note("\n".join(f"{key} {cell}" for key, cell in world.cells.items()))
    known = facts(world)
    decision = plan(tree_of(root, world, known), known)
    assert seen(decision) == Oracle(world).expect()
    assert all((move.old, move.new) in NODE_MOVES for move in decision.moves)


@given(trees, rows, st.integers(1, 99))
@settings(MANY, max_examples=200 * SCALE)
def test_the_order_of_rows_has_no_meaning(shape: bytes, states: bytes, order: int) -> None:
    root = tree(shape)
    world = random_rows(root, states)
    one, other = facts(world), facts(world, order)
    assert plan(tree_of(root, world, one), one) == plan(tree_of(root, world, other), other)


@given(trees, rows)
@settings(MANY, max_examples=200 * SCALE)
def test_planning_again_after_the_decision_gives_nothing_new(shape: bytes, states: bytes) -> None:
    root = tree(shape)
    world = random_rows(root, states)
    known = facts(world)
    decision = Decision(settles=True)
    while decision.settles:
        rendered = tree_of(root, world, known)
        decision = plan(rendered, known)
        finished = {key for key, row in known.rows.items() if row.state == "finished"}
        assert not finished & {each.key for each in decision.ready}
        known = apply(rendered, known, decision)
        world.cells |= {
            key: Cell(row.state.value) for key, row in known.rows.items() if row.kind == "loop"
        }
    again = plan(tree_of(root, world, known), known)
    assert not again.settles
    assert (again.moves, again.ready, again.status) == ((), (), decision.status)
