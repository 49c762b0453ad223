"""Whose turn it is: gates of sequences, dependencies, loops at the end of a pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from smithers.workflow.facts import Facts
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import NodeState
from smithers.workflow.tree import Dep, Group, Item, Leaf, LoopPass, Tree
from smithers.workflow.turns import state_of

_DONE = frozenset({NodeState.FINISHED, NodeState.SKIPPED})


@dataclass(frozen=True, slots=True)
class Turns:
    """`open`: pending nodes that nothing holds back. `held`: nodes that dependencies hold
    back. `ended`: loops whose pass is done. `empty`: loops whose pass has no nodes.
    """

    open: set[NodeKey] = field(default_factory=set[NodeKey])
    held: dict[NodeKey, tuple[Dep, ...]] = field(default_factory=dict[NodeKey, tuple[Dep, ...]])
    ended: list[LoopPass] = field(default_factory=list[LoopPass])
    empty: list[LoopPass] = field(default_factory=list[LoopPass])


def is_done(item: Leaf | LoopPass, facts: Facts) -> bool:
    """Say whether what follows a node may begin: finished, skipped, or failed and tolerated."""
    state = state_of(facts.rows.get(item.key))
    if state is NodeState.FAILED:
        return isinstance(item, Leaf) and item.node.continue_on_fail
    return state in _DONE


def failing(tree: Tree, facts: Facts) -> list[Leaf | LoopPass]:
    """Give the mounted nodes whose failure fails the run, in document order."""
    failed = NodeState.FAILED
    return [
        item
        for item in tree.items
        if (row := facts.rows.get(item.key)) is not None
        and row.state is failed
        and not is_done(item, facts)
    ]


def take_turns(tree: Tree, facts: Facts) -> Turns:
    """Find the nodes whose turn it is and the loops whose pass is done.

    A part of the tree that isn't open isn't looked into: it can't be done before it began,
    and what is in it can't begin.
    """
    turns = Turns()
    tolerated = {
        leaf.key for leaf in tree.leaves if leaf.node.continue_on_fail and is_done(leaf, facts)
    }
    _Visit(tree, facts, turns, tolerated).item(tree.root)
    return turns


@dataclass(slots=True)
class _Visit:
    tree: Tree
    facts: Facts
    turns: Turns
    tolerated: set[NodeKey]

    def item(self, item: Item) -> bool:
        """Visit an item whose turn it is; say whether it is done."""
        match item:
            case Leaf():
                return self.leaf(item)
            case LoopPass():
                return self.loop(item)
            case Group():
                if item.ordered:
                    return self.ordered(item.children)
                done = True
                for child in item.children:
                    done = self.item(child) and done
                return done

    def ordered(self, children: tuple[Item, ...]) -> bool:
        """Visit children in order, up to the first that isn't done."""
        return all(self.item(child) for child in children)

    def leaf(self, leaf: Leaf) -> bool:
        """Visit a task or wait."""
        row = self.facts.rows.get(leaf.key)
        if row is None or row.state is NodeState.PENDING:
            if self.free(leaf.key):
                self.turns.open.add(leaf.key)
            return False
        return row.state in _DONE or leaf.key in self.tolerated

    def loop(self, loop: LoopPass) -> bool:
        """Visit a loop, which is done when its row is; a pass that is done is noted."""
        state = state_of(self.facts.rows.get(loop.key))
        if state is NodeState.FINISHED:
            # Nothing new is mounted in it, but a task of it may have been taken back.
            return self.ordered(loop.children)
        if state is not NodeState.PENDING or not self.free(loop.key):
            return False
        if self.ordered(loop.children):
            if loop.node.until or _has_nodes(loop.children):
                self.turns.ended.append(loop)
            else:
                self.turns.empty.append(loop)
        return False

    def free(self, key: NodeKey) -> bool:
        """Say whether all dependencies of a node are done; note those that aren't."""
        deps = self.tree.deps.get(key)
        if not deps:
            return True
        waiting = tuple(dep for dep in deps if not self.satisfied(dep))
        if waiting:
            self.turns.held[key] = waiting
        return not waiting

    def satisfied(self, dep: Dep) -> bool:
        """Say whether a dependency is done, and the loop that holds it, if any, has ended."""
        rows = self.facts.rows
        if dep.loop is not None and state_of(rows.get(dep.loop)) is not NodeState.FINISHED:
            return False
        row = rows.get(dep.key)
        return row is not None and (row.state in _DONE or dep.key in self.tolerated)


def _has_nodes(items: Iterable[Item]) -> bool:
    return any(not isinstance(item, Group) or _has_nodes(item.children) for item in items)
