"""From the nodes that a workflow returned to a tree with keys, in one walk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple, cast

from pydantic import BaseModel

from smithers.workflow.containers import Branch, Container, Loop, Parallel, Sequence
from smithers.workflow.errors import (
    DUPLICATE_ID,
    INVALID_ID,
    INVALID_NODE,
    RUN_TOO_LARGE,
    AuthorError,
    RenderError,
)
from smithers.workflow.facts import Chain, Chains, Facts
from smithers.workflow.keys import NODE_ID_BYTES, NodeKey, node_key, normal
from smithers.workflow.nodes import Node, Ref
from smithers.workflow.states import NodeState
from smithers.workflow.tasks import Task
from smithers.workflow.tree import Dep, Group, Item, Leaf, LoopPass, Tree

MAX_NODES: Final = 200_000
MAX_DEPTH: Final = 100
GATE_NAMES: Final = 32

Gate = tuple[NodeKey, ...]


def extract(root: Node, facts: Facts) -> Tree:
    """Give the tree of a render under the run's facts.

    Raises AuthorError (DUPLICATE_ID naming both places, INVALID_ID, INVALID_NODE),
    RenderError (RUN_TOO_LARGE).
    """
    walk = _Walk(facts)
    item, _ = walk.visit(root, _Place("0", (), (), closed=False), ())
    chains = {leaf.node.id: leaf.chain for leaf in walk.leaves}
    chains |= {loop.node.id: loop.chain for loop in walk.loops}
    items: list[Leaf | LoopPass] = [*walk.leaves, *walk.loops]
    fresh = sum(each.key not in facts.rows for each in items)
    if len(facts.rows) + fresh > MAX_NODES:
        raise RenderError(
            RUN_TOO_LARGE,
            f"the run would have {len(facts.rows) + fresh} nodes; {MAX_NODES} are allowed",
            details={"nodes": len(facts.rows) + fresh, "limit": MAX_NODES},
        )
    seen = facts.with_chains({**facts.chains, **chains})
    return Tree(
        root=item or Group("sequence", "0", ordered=True, cap=None, children=()),
        leaves=tuple(walk.leaves),
        loops=tuple(walk.loops),
        caps=tuple(walk.caps),
        deps=_dependencies(walk, seen, chains),
        chains=chains,
    )


class _Place(NamedTuple):
    """Where a node stands; in a `closed` loop nothing new is mounted."""

    path: str
    chain: Chain
    caps: tuple[int, ...]
    closed: bool


@dataclass(slots=True)
class _Walk:
    facts: Facts
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    loops: list[LoopPass] = field(default_factory=list[LoopPass])
    caps: list[int] = field(default_factory=list[int])
    seen: dict[str, tuple[str, Node, str]] = field(default_factory=dict[str, tuple[str, Node, str]])

    def visit(self, node: Node, place: _Place, gate: Gate) -> tuple[Item | None, Gate]:
        """Give a node's item, and the names of what must be done after it."""
        if isinstance(node, Ref):
            return self._leaf(cast("Ref[BaseModel]", node), place, gate)
        if place.path.count(".") > MAX_DEPTH:
            raise AuthorError(INVALID_NODE, f"nodes are nested deeper than {MAX_DEPTH}")
        match node:
            case Loop():
                return self._loop(node, place, gate)
            case Sequence():
                children, gate = self._ordered(node, place, gate)
                return Group("sequence", place.path, True, None, children), gate  # noqa: FBT003
            case Parallel() | Branch():
                return self._side_by_side(node, place, gate)
            case _:
                raise AuthorError(
                    INVALID_NODE,
                    f"a {type(node).__name__} can't be mounted",
                    details={"path": place.path},
                )

    def _leaf(self, node: Ref[BaseModel], place: _Place, gate: Gate) -> tuple[Item | None, Gate]:
        self._claim_id(node.id, node, place.path)
        chain = place.chain
        key = node_key(node.id, self.facts.passes(chain)) if chain else (node.id, 0)
        if place.closed and key not in self.facts.rows:
            return None, gate
        leaf = Leaf(node, key, chain, place.path, place.caps, gate)
        self.leaves.append(leaf)
        return leaf, (key,)

    def _loop(self, loop: Loop, place: _Place, gate: Gate) -> tuple[Item | None, Gate]:
        self._claim_id(loop.id, loop, place.path)
        passes = self.facts.passes((*place.chain, loop.id))
        instance, _ = node_key(loop.id, (*passes[:-1], ("", 0)))
        key = (instance, passes[-1][1])
        row = self.facts.rows.get(key)
        if place.closed and row is None:
            return None, gate
        if len(instance.encode()) > NODE_ID_BYTES // 2:
            raise AuthorError(INVALID_ID, f"Loop {loop.id!r}: the ids of the loops are too long")
        index = len(self.loops)
        # Its place in document order is before its body.
        self.loops.append(LoopPass(loop, key, place.chain, place.path, gate, ()))
        closed = row is not None and row.state in (NodeState.FINISHED, NodeState.FAILED)
        inside = _Place(place.path, (*place.chain, loop.id), place.caps, closed)
        children, _ = self._ordered(loop, inside, gate)
        made = LoopPass(loop, key, place.chain, place.path, gate, children)
        self.loops[index] = made
        return made, (key,)

    def _ordered(self, node: Container, place: _Place, gate: Gate) -> tuple[tuple[Item, ...], Gate]:
        items: list[Item] = []
        for child, inside in _children(node, place):
            item, gate = self.visit(child, inside, gate)
            if item is not None:
                items.append(item)
        return tuple(items), gate

    def _side_by_side(
        self, node: Parallel | Branch, place: _Place, gate: Gate
    ) -> tuple[Item, Gate]:
        cap = node.max_concurrency if isinstance(node, Parallel) else None
        if cap is not None:
            place = _Place(place.path, place.chain, (*place.caps, len(self.caps)), place.closed)
            self.caps.append(cap)
        items: list[Item] = []
        exits: dict[NodeKey, None] = {}
        for child, inside in _children(node, place):
            item, ends = self.visit(child, inside, gate)
            if item is not None:
                items.append(item)
                if len(exits) < GATE_NAMES:
                    exits.update(dict.fromkeys(ends))
        what = "branch" if isinstance(node, Branch) else "parallel"
        group = Group(what, place.path, ordered=False, cap=cap, children=tuple(items))
        return group, tuple(islice(exits, GATE_NAMES)) or gate

    def _claim_id(self, author_id: str, node: Node, path: str) -> None:
        name = author_id if author_id.isascii() else normal(author_id)
        other = self.seen.get(name)
        if other is None:
            self.seen[name] = (author_id, node, path)
            return
        first, second = _where(other[1], other[2]), _where(node, path)
        raise AuthorError(
            DUPLICATE_ID,
            f"two nodes have the id {author_id!r}: {first} and {second}",
            details={"id": author_id, "places": [first, second]},
            hint="Give each its own id, for example with the name of what it works on.",
        )


def _children(node: Container, place: _Place) -> Iterator[tuple[Node, _Place]]:
    for child, number in zip(node.children, node.places, strict=True):
        yield child, _Place(f"{place.path}.{number}", place.chain, place.caps, place.closed)


def _where(node: Node, path: str) -> str:
    file, line = node.site
    return f"{type(node).__name__} at {path} ({file}:{line})"


def _dependencies(walk: _Walk, seen: Facts, chains: Chains) -> dict[NodeKey, tuple[Dep, ...]]:
    loops = {loop.node.id for loop in walk.loops}
    found: dict[NodeKey, tuple[Dep, ...]] = {}
    items: list[Leaf | LoopPass] = [*walk.leaves, *walk.loops]
    for each in items:
        node = each.node
        names = node.depends_on
        if isinstance(node, Task) and node.needs:
            names = tuple(dict.fromkeys((*names, *(need.id for need in node.needs))))
        if names:
            found[each.key] = tuple(
                _dependency(name, each.chain, seen, mounted=name in chains, is_loop=name in loops)
                for name in names
            )
    return found


def _dependency(name: str, chain: Chain, seen: Facts, *, mounted: bool, is_loop: bool) -> Dep:
    key = seen.loop_key_of(name) if is_loop else seen.key_of(name)
    around = seen.chains.get(name, ())
    shared = 0
    while shared < min(len(chain), len(around)) and chain[shared] == around[shared]:
        shared += 1
    # A loop that holds the target alone must have ended: its last pass is the one that counts.
    outside = around[shared] if len(around) > shared else None
    loop = seen.loop_key_of(outside) if outside is not None and outside != name else None
    return Dep(name, key, loop, mounted)
