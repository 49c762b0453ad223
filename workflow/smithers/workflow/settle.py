"""Settle: render, plan and apply in memory until nothing changes; then there is one frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel

from smithers.workflow.apply import apply
from smithers.workflow.decision import Consume, Decision, Move, Static
from smithers.workflow.definition import Workflow
from smithers.workflow.descriptor import Descriptor, Memo, describe
from smithers.workflow.document import FrameDoc, Mount
from smithers.workflow.errors import RENDER_UNSETTLED, RenderError
from smithers.workflow.facts import Facts, facts_of
from smithers.workflow.frame import FrameStructure, reconstruct, store, structure_of
from smithers.workflow.keys import NodeKey
from smithers.workflow.plan import plan, stopping
from smithers.workflow.render import render
from smithers.workflow.snapshot import NodeRow, Snapshot
from smithers.workflow.states import NodeKind, NodeState
from smithers.workflow.tasks import Task
from smithers.workflow.tree import Leaf, LoopPass, Tree

MAX_PASSES: Final = 1000


def settle(
    workflow: Workflow,
    snapshot: Snapshot,
    *,
    previous: FrameStructure | None = None,
    memo: Memo | None = None,
    trigger: str = "facts",
) -> FrameDoc:
    """Give the frame of a run that was loaded.

    `previous` is the structure of the run's last committed frame, if the caller made that frame
    and kept it; otherwise it is put together from the snapshot's frames. `memo` is kept over
    the frames of a run.
    Raises AuthorError, ReadError, InputError, RenderError, SnapshotError.
    """
    before = previous or reconstruct(snapshot.frames)
    facts = facts_of(snapshot, before.chains if before else {})
    stopped = stopping(facts)
    if stopped is not None:
        run = snapshot.run
        return FrameDoc(run.run_id, run.wanted_seq, trigger, None, stopped)
    run_input = workflow.stored_input(snapshot.run.input)
    work = _Work(workflow, run_input, memo or Memo(), facts, first=before is None)
    decision = work.run()
    return _document(work, decision, before, snapshot, trigger)


@dataclass(slots=True)
class _Work:
    """The passes of one frame and what they have settled so far."""

    workflow: Workflow
    run_input: BaseModel
    memo: Memo
    facts: Facts
    first: bool
    tree: Tree = field(init=False)
    passes: int = 0
    moves: list[Move] = field(default_factory=list[Move])
    statics: list[tuple[Static, Descriptor]] = field(
        default_factory=list[tuple[Static, Descriptor]]
    )
    consumed: list[Consume] = field(default_factory=list[Consume])
    mounts: dict[NodeKey, Mount] = field(default_factory=dict[NodeKey, Mount])

    def run(self) -> Decision:
        """Go on until a decision acts on the world; give it."""
        while True:
            self.tree = self.stable()
            if self.first:
                self.check_ids()
            decision = plan(self.tree, self.facts)
            if not decision.settles:
                return decision
            self.note(decision)
            if decision.consumed:
                self.passes = 0  # a signal is a new fact
            self.facts = apply(self.tree, self.facts, decision)

    def stable(self) -> Tree:
        """Render until what was read was read in the passes in which it is mounted."""
        while True:
            self.passes += 1
            if self.passes > MAX_PASSES:
                raise _unsettled(self.workflow)
            rendering = render(self.workflow, self.facts, self.run_input)
            chains = {**self.facts.chains, **rendering.tree.chains}
            self.facts = self.facts.with_chains(chains)
            if rendering.stable:
                return rendering.tree

    def check_ids(self) -> None:
        """Render the first tree twice: ids that differ would mount new tasks for ever."""
        self.first = False
        again = render(self.workflow, self.facts, self.run_input).tree
        one, other = ([item.key[0] for item in tree.items] for tree in (self.tree, again))
        if one != other:
            raise _unstable(self.workflow, sorted(set(one) ^ set(other)) or sorted(one))

    def note(self, decision: Decision) -> None:
        """Keep what a pass has settled; its nodes are mounted whatever comes after."""
        self.moves += decision.moves
        self.consumed += decision.consumed
        items = {item.key: item for item in self.tree.items}
        for key in (*(move.key for move in decision.moves), *(s.key for s in decision.statics)):
            if key not in self.facts.rows and key in items:
                self.mounts[key] = self.mount(items[key])
        for static in decision.statics:
            leaf = items[static.key]
            assert isinstance(leaf, Leaf)
            self.statics.append((static, self.descriptor(leaf)))
        for key in decision.advanced:
            self.mounts[key] = Mount(key, NodeKind.LOOP)

    def mount(self, item: Leaf | LoopPass) -> Mount:
        """Give the row of an item."""
        deps = tuple(dep.key for dep in self.tree.deps.get(item.key, ()))
        upstream = tuple(dict.fromkeys((*deps, *item.gate))) if deps else item.gate
        if isinstance(item, LoopPass):
            return Mount(item.key, NodeKind.LOOP, upstream)
        return Mount(item.key, item.node.kind, upstream, self.descriptor(item))

    def descriptor(self, leaf: Leaf) -> Descriptor:
        """Give a leaf's descriptor, with the keys that its needs stand for now."""
        node = leaf.node
        needs: tuple[NodeKey, ...] = ()
        if isinstance(node, Task) and node.needs:
            keys = {dep.id: dep.key for dep in self.tree.deps[leaf.key]}
            needs = tuple(keys[need.id] for need in node.needs)
        return describe(node, needs, self.memo)


def _document(
    work: _Work,
    decision: Decision,
    before: FrameStructure | None,
    snapshot: Snapshot,
    trigger: str,
) -> FrameDoc:
    tree, facts = work.tree, work.facts
    described = {leaf.key: work.descriptor(leaf) for leaf in tree.leaves}
    now = structure_of(tree, {key[0]: each.hash for key, each in described.items()}, facts.chains)
    stored = {(row[0], row[1]): row for row in snapshot.nodes}
    for item in tree.items:
        row = stored.get(item.key)
        if row is None or (
            row.state not in _FIXED
            and (_described_anew(row, described.get(item.key)) or _moved(item, before, now))
        ):
            work.mounts[item.key] = work.mount(item)
    return FrameDoc(
        run_id=snapshot.run.run_id,
        wanted_seq=snapshot.run.wanted_seq,
        trigger=trigger,
        stored=store(before, now, snapshot.run.frame_no + 1),
        decision=decision,
        mounts=tuple(work.mounts.values()),
        moves=(*work.moves, *decision.moves),
        statics=tuple(work.statics),
        consumed=tuple(work.consumed),
        ready=tuple((each.key, described[each.key].hash) for each in decision.ready),
        known=frozenset(row.descriptor_hash for row in snapshot.nodes if row.descriptor_hash),
        exhausted=_exhausted(facts),
        tolerated=_tolerated(facts, decision),
    )


_FIXED: Final = frozenset({NodeState.FINISHED, NodeState.SKIPPED, NodeState.READY})


def _described_anew(row: NodeRow, made: Descriptor | None) -> bool:
    return made is not None and made.hash != row.descriptor_hash


def _moved(item: Leaf | LoopPass, before: FrameStructure | None, now: FrameStructure) -> bool:
    """Say whether other nodes than before stand in front of an item."""
    entry = before.nodes.get(item.key[0]) if before else None
    return entry is not None and entry.get("gate") != now.nodes[item.key[0]]["gate"]


def _exhausted(facts: Facts) -> tuple[str, ...]:
    """Name the loops that ended by their number of passes."""
    return tuple(
        sorted(
            row.node_id
            for row in facts.rows.values()
            if row.kind is NodeKind.LOOP and row.detail and row.detail.get("exhausted")
        )
    )


def _tolerated(facts: Facts, decision: Decision) -> tuple[NodeKey, ...]:
    """Name the nodes that failed without failing the run."""
    if decision.error is not None:
        return ()
    failed = NodeState.FAILED
    return tuple(sorted(key for key, row in facts.rows.items() if row.state is failed))


def _unstable(workflow: Workflow, changed: list[str]) -> RenderError:
    return RenderError(
        RENDER_UNSETTLED,
        f"workflow {workflow.name!r} gave two trees for the same rows: "
        f"{', '.join(map(repr, changed[:4]))} differ",
        details={"ids": changed[:20]},
        hint="Ids may not hold a time, a random part, or the order of a set.",
    )


def _unsettled(workflow: Workflow) -> RenderError:
    return RenderError(
        RENDER_UNSETTLED,
        f"workflow {workflow.name!r} gave another tree {MAX_PASSES} times without a new fact",
        details={"passes": MAX_PASSES},
        hint="Ids must be the same in every render; loops of static values need a small "
        "max_iterations.",
    )
