"""A rendered tree with its keys: what a plan walks over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from pydantic import BaseModel

from smithers.workflow.containers import Loop
from smithers.workflow.facts import Chain, Chains
from smithers.workflow.keys import NodeKey
from smithers.workflow.nodes import Ref


class Leaf(NamedTuple):
    """A task or wait under its key.

    `caps` are the numbers of the tree's caps that count it; `gate` names nodes that come
    before it in its sequence (the first few of them, when they are many).
    """

    node: Ref[BaseModel]
    key: NodeKey
    chain: Chain
    path: str
    caps: tuple[int, ...]
    gate: tuple[NodeKey, ...]


@dataclass(frozen=True, slots=True)
class LoopPass:
    """A loop in its current pass; its body is a sequence."""

    node: Loop
    key: NodeKey
    chain: Chain
    path: str
    gate: tuple[NodeKey, ...]
    children: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A Sequence (`ordered`), Parallel or Branch."""

    what: str
    path: str
    ordered: bool
    cap: int | None
    children: tuple[Item, ...]


Item: TypeAlias = Leaf | LoopPass | Group


@dataclass(frozen=True, slots=True)
class Dep:
    """What a node waits for outside its sequence.

    `loop` is the loop that must have ended too, when only the target stands in it.
    """

    id: str
    key: NodeKey
    loop: NodeKey | None
    mounted: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """One rendered tree. `leaves` and `loops` are in document order."""

    root: Item
    leaves: tuple[Leaf, ...]
    loops: tuple[LoopPass, ...]
    caps: tuple[int, ...]
    deps: Mapping[NodeKey, tuple[Dep, ...]]
    chains: Chains
    """The loops around every node that is mounted."""

    @property
    def items(self) -> tuple[Leaf | LoopPass, ...]:
        """Everything that has a row: leaves, then loops."""
        return (*self.leaves, *self.loops)
