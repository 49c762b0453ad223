"""How a run must end, whatever the order of its events: everything happens that can."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from support.workflow_oracle import Cell, Expectation, Oracle, World
from support.workflow_trees import Key, Spec


@dataclass
class Ending:
    """The end of a run: `done` are finished keys, for a run that doesn't fail."""

    status: str
    stuck: bool = False
    done: set[Key] = field(default_factory=set[Key])
    skipped: set[Key] = field(default_factory=set[Key])


def fails(spec: Spec) -> bool:
    """Say whether a leaf is fated to fail when it runs or is asked."""
    return spec.fate == 11 and spec.kind in ("task", "approval", "human")


def ideal(root: Spec) -> Ending:
    """Let everything happen that can, failures blocking only what is behind them."""
    world = World(root, {})
    oracle = Oracle(world)
    while True:
        shown = [s for s in oracle.rowed(root) if is_shown(oracle, s)]
        for spec in shown:
            world.cells.setdefault(oracle.key(spec), Cell("pending"))
        changed = False
        hidden = {s.id for s in oracle.rowed(root)} - {s.id for s in shown}
        trimmed = Oracle(World(without(root, hidden), world.cells))
        for spec in [s for s in trimmed.rowed(trimmed.world.root) if trimmed.state(s) == "pending"]:
            if not trimmed.may_begin(spec):
                continue
            changed = _happen(spec, trimmed)
            if changed:
                break  # the tree has changed
        if not changed:
            return _ending(trimmed)


def _happen(spec: Spec, oracle: Oracle) -> bool:
    world, key = oracle.world, oracle.key(spec)
    if spec.is_leaf:
        bad = "failed" if fails(spec) else "finished"
        world.cells[key] = Cell("skipped" if spec.skip else bad)
        return True
    found = Expectation()
    oracle.judge(spec, found)
    for moved, _, new in found.moves:
        world.cells[moved] = Cell(new)
    for fresh in found.advanced:
        world.cells[fresh] = Cell("pending")
    return bool(found.moves)


def _ending(oracle: Oracle) -> Ending:
    if oracle.failures():
        return Ending("failed")
    if not oracle.done(oracle.world.root):
        return Ending("failed", stuck=True)
    cells = oracle.world.cells.items()
    return Ending(
        "finished",
        done={key for key, cell in cells if cell.state == "finished"},
        skipped={key for key, cell in cells if cell.state == "skipped"},
    )


def is_shown(oracle: Oracle, spec: Spec) -> bool:
    """Say whether a conditional leaf is mounted: what it asks for has an output."""
    if spec.when is None:
        return True
    return oracle.state(oracle.specs[spec.when]) == "finished"


def without(spec: Spec, hidden: set[str]) -> Spec:
    """Give the tree without some of its leaves."""
    children = [without(child, hidden) for child in spec.children if child.id not in hidden]
    return replace(spec, children=children)
