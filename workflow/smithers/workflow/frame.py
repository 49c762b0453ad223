"""Frames: the structure of a tree, stored as a full body or as what changed.

A body is a flat map, so that a change is small:

    {"root": key, "nodes": {key: entry}, "chains": {author id: [loop, …]}}

The key of a node with a row is its node id; that of a container is `@@` and its path, which
no author can write. An entry holds `kind` and, by kind, `iteration`, `descriptor` (hash),
`cap`, `children` (keys, in order) and `gate` (a mark that changes with what comes before).
`chains` remembers the loops around every node that any frame has mounted in one.

A delta holds `set` (new and changed entries), `splice` (children: at, how many go, what
comes), `drop`, `chains` (new ones), and `root` if it changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from smithers.workflow.canonical import canonical, digest
from smithers.workflow.errors import SNAPSHOT_INVALID, SnapshotError
from smithers.workflow.keys import MARK
from smithers.workflow.snapshot import FrameRow
from smithers.workflow.tree import Item, Leaf, LoopPass, Tree

Entry: TypeAlias = dict[str, object]
Body: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class FrameStructure:
    """The structure of one frame, and how heavy the stored bodies that lead to it are.

    `frame_no` is the last frame that has a body; 0 before any.
    """

    root: str
    nodes: Mapping[str, Entry]
    chains: Mapping[str, tuple[str, ...]]
    frame_no: int = field(default=0, compare=False)
    full_weight: int = field(default=0, compare=False)
    delta_weight: int = field(default=0, compare=False)

    def to_json(self) -> Body:
        """Give the full body."""
        chains = {name: list(chain) for name, chain in self.chains.items()}
        return {"root": self.root, "nodes": dict(self.nodes), "chains": chains}

    @property
    def hash(self) -> str:
        """Give a hash that equal structures share."""
        return digest(canonical(self.to_json(), "a frame"))


@dataclass(frozen=True, slots=True)
class StoredStructure:
    """What a frame stores: a full body (no base), a delta to `base`, or no body."""

    base: int | None
    body: Body | None
    after: FrameStructure


def structure_of(
    tree: Tree, hashes: Mapping[str, str], known: Mapping[str, tuple[str, ...]]
) -> FrameStructure:
    """Give a tree's structure; `hashes` are descriptors by node id, `known` older chains."""
    nodes: dict[str, Entry] = {}
    marks: dict[int, str] = {}

    def mark(gate: tuple[tuple[str, int], ...]) -> str:
        # Siblings share one gate object, so that a wide tree is marked in one go.
        found = marks.get(id(gate))
        if found is None:
            found = marks[id(gate)] = digest(canonical(gate, "a gate"))[:8] if gate else ""
        return found

    def add(item: Item) -> str:
        if isinstance(item, Leaf):
            key, iteration = item.key
            nodes[key] = {
                "kind": item.node.kind.value,
                "iteration": iteration,
                "descriptor": hashes.get(key),
                "gate": mark(item.gate),
            }
            return key
        if isinstance(item, LoopPass):
            key, iteration = item.key
            entry: Entry = {"kind": "loop", "iteration": iteration, "gate": mark(item.gate)}
            entry["max"] = item.node.max_iterations
        else:
            key = MARK + item.path
            entry = {"kind": item.what}
            if item.cap is not None:
                entry["cap"] = item.cap
        nodes[key] = entry
        entry["children"] = [add(child) for child in item.children]
        return key

    root = add(tree.root)
    looped = {name: chain for name, chain in tree.chains.items() if chain}
    older = {name: chain for name, chain in known.items() if chain and name not in tree.chains}
    return FrameStructure(root, nodes, {**older, **looped})


def store(previous: FrameStructure | None, now: FrameStructure, frame_no: int) -> StoredStructure:
    """Give what the frame `frame_no` stores for a structure that follows another."""
    if previous is None or previous.frame_no == 0:
        return _full(now, frame_no)
    if previous == now:
        return StoredStructure(None, None, previous)
    delta = _delta(previous, now)
    weight = previous.delta_weight + len(canonical(delta, "a frame"))
    if weight >= previous.full_weight:
        return _full(now, frame_no)
    after = FrameStructure(now.root, now.nodes, now.chains, frame_no, previous.full_weight, weight)
    return StoredStructure(previous.frame_no, delta, after)


def reconstruct(rows: Sequence[FrameRow]) -> FrameStructure | None:
    """Give the structure after frames with a body: a full one and the deltas since, in order.

    Raises SnapshotError if they don't fit together.
    """
    found: FrameStructure | None = None
    for row in rows:
        try:
            weight = len(canonical(row.body, "a frame"))
            if row.base is None:
                full = _read(row.body)
                found = FrameStructure(*full, row.frame_no, full_weight=weight)
                continue
            found = _base(found, row)
            total = found.delta_weight + weight
            patched = _patch(found, row.body)
            found = FrameStructure(*patched, row.frame_no, found.full_weight, total)
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(
                SNAPSHOT_INVALID, f"frame {row.frame_no} can't be put together: {error}"
            ) from error
    return found


def _base(found: FrameStructure | None, row: FrameRow) -> FrameStructure:
    if found is None or found.frame_no != row.base:
        raise KeyError(f"frame {row.base}")
    return found


def _full(now: FrameStructure, frame_no: int) -> StoredStructure:
    body = now.to_json()
    weight = len(canonical(body, "a frame"))
    after = FrameStructure(now.root, now.nodes, now.chains, frame_no, full_weight=weight)
    return StoredStructure(None, body, after)


def _delta(old: FrameStructure, new: FrameStructure) -> Body:
    changed: dict[str, Entry] = {}
    spliced: dict[str, list[object]] = {}
    for key, entry in new.nodes.items():
        before = old.nodes.get(key)
        if before is entry or before == entry:
            continue
        if before is not None and _same_but_children(before, entry):
            spliced[key] = _splice(_children(before), _children(entry))
        else:
            changed[key] = entry
    body: Body = {
        "set": changed,
        "splice": spliced,
        "drop": sorted(old.nodes.keys() - new.nodes.keys()),
        "chains": {
            name: list(chain) for name, chain in new.chains.items() if old.chains.get(name) != chain
        },
        "unchain": sorted(old.chains.keys() - new.chains.keys()),
    }
    body = {name: part for name, part in body.items() if part}
    if old.root != new.root:
        body["root"] = new.root
    return body


def _patch(
    old: FrameStructure, body: Mapping[str, object]
) -> tuple[str, dict[str, Entry], dict[str, tuple[str, ...]]]:
    nodes = dict(old.nodes)
    for key in cast("list[str]", body.get("drop", [])):
        del nodes[key]
    nodes |= cast("dict[str, Entry]", body.get("set", {}))
    for key, splice in cast("dict[str, list[object]]", body.get("splice", {})).items():
        at, gone, come = cast("tuple[int, int, list[str]]", tuple(splice))
        children = _children(nodes[key])
        nodes[key] = {**nodes[key], "children": [*children[:at], *come, *children[at + gone :]]}
    chains = {**old.chains, **_chains(body)}
    for name in cast("list[str]", body.get("unchain", [])):
        del chains[name]
    return str(body.get("root", old.root)), nodes, chains


def _read(
    body: Mapping[str, object],
) -> tuple[str, dict[str, Entry], dict[str, tuple[str, ...]]]:
    return str(body["root"]), dict(cast("dict[str, Entry]", body["nodes"])), _chains(body)


def _chains(body: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    given = cast("dict[str, list[str]]", body.get("chains", {}))
    return {name: tuple(chain) for name, chain in given.items()}


def _children(entry: Entry) -> list[str]:
    return cast("list[str]", entry.get("children", []))


def _same_but_children(old: Entry, new: Entry) -> bool:
    return "children" in new and {**old, "children": None} == {**new, "children": None}


def _splice(old: list[str], new: list[str]) -> list[object]:
    """Give the one cut that makes one list of the other: at, how many go, what comes."""
    at = 0
    while at < min(len(old), len(new)) and old[at] == new[at]:
        at += 1
    end = 0
    while end < min(len(old), len(new)) - at and old[-1 - end] == new[-1 - end]:
        end += 1
    return [at, len(old) - at - end, new[at : len(new) - end]]
