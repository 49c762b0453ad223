"""A second opinion on plans: what a tree means, said as slowly and plainly as possible.

`Oracle.expect` says by brute force what a plan must decide for given rows: every question is
answered by looking at the whole tree again. Nothing here uses the planner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from support.workflow_trees import Chain, Key, Spec, chains_of, signal_name, walk

DONE = {"finished", "skipped"}
WAITS = ("waiting-approval", "waiting-event", "waiting-quota", "waiting-timer")


@dataclass
class Cell:
    """One node row and what belongs to it."""

    state: str
    due: int = 0
    """-1 past, 0 none, 1 future."""
    in_progress: bool = False
    fact: str | None = None
    """What people, signals and the clock have said about the node."""


@dataclass
class World:
    """Rows by key; `signals` are (seq, name) of the inbox."""

    root: Spec
    cells: dict[Key, Cell]
    signals: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    cap: int | None = None

    def state(self, key: Key) -> str:
        """Give a node's state."""
        cell = self.cells.get(key)
        return cell.state if cell else "pending"

    def current(self, loop: str, around: Chain) -> int:
        """Give a loop's current pass: the highest with a row."""
        name = self.loop_name(loop, around)
        return max([k for n, k in self.cells if n == name], default=0)

    def loop_name(self, loop: str, around: Chain) -> str:
        """Give the node id of a loop inside others."""
        parts = [f"{outer}={self.current(outer, around[:i])}" for i, outer in enumerate(around)]
        return loop + ("@@" + ",".join(parts) if parts else "")

    def key(self, spec: Spec, chain: Chain) -> Key:
        """Give the key of a node in the current passes."""
        if spec.kind == "loop":
            return (self.loop_name(spec.id, chain), self.current(spec.id, chain))
        if not chain:
            return (spec.id, 0)
        return (self.loop_name(spec.id, chain[:-1]), self.current(chain[-1], chain[:-1]))


@dataclass
class Expectation:
    """What a plan must decide."""

    status: str = "running"
    settles: bool = False
    moves: set[tuple[Key, str, str]] = field(default_factory=set[tuple[Key, str, str]])
    statics: set[Key] = field(default_factory=set[Key])
    consumed: dict[Key, int] = field(default_factory=dict[Key, int])
    advanced: set[Key] = field(default_factory=set[Key])
    ready: list[Key] = field(default_factory=list[Key])


class Oracle:
    """Answers about one tree and one set of rows."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.chains = dict(chains_of(world.root))
        self.specs = {spec.id: spec for spec, _ in walk(world.root)}
        self.parents = {
            child.id: (spec, at)
            for spec, _ in walk(world.root)
            for at, child in enumerate(spec.children)
        }

    def key(self, spec: Spec) -> Key:
        """Give a node's key."""
        return self.world.key(spec, self.chains[spec.id])

    def state(self, spec: Spec) -> str:
        """Give a node's state."""
        return self.world.state(self.key(spec))

    def ancestors(self, spec: Spec) -> Iterator[tuple[Spec, int]]:
        """Give each container around a node with the place of the child that leads to it."""
        while spec.id in self.parents:
            parent, at = self.parents[spec.id]
            yield parent, at
            spec = parent

    def mounted(self, spec: Spec) -> bool:
        """Say whether a node is in the tree: a loop that has ended mounts only what has a row."""
        loops = [parent for parent, _ in self.ancestors(spec) if parent.kind == "loop"]
        if not loops:
            return True
        closed = self.state(loops[0]) in ("finished", "failed")
        return self.mounted(loops[0]) and (not closed or self.key(spec) in self.world.cells)

    def rowed(self, spec: Spec) -> list[Spec]:
        """Give the mounted nodes with rows in a subtree, itself included."""
        found = [each for each, _ in walk(spec) if each.is_leaf or each.kind == "loop"]
        return [each for each in found if self.mounted(each)]

    def settled(self, spec: Spec) -> bool:
        """Say whether a node lets what follows begin."""
        state = self.state(spec)
        return state in DONE or (state == "failed" and spec.tolerant and spec.is_leaf)

    def done(self, spec: Spec) -> bool:
        """Say whether a whole subtree is done."""
        return all(self.settled(each) for each in self.rowed(spec))

    def dependency_met(self, spec: Spec, name: str) -> bool:
        """Say whether one dependency of a node is met."""
        target = self.specs.get(name)
        if target is None:
            return False
        mine, theirs = self.chains[spec.id], self.chains[name]
        same = 0
        while same < min(len(mine), len(theirs)) and mine[same] == theirs[same]:
            same += 1
        if len(theirs) > same and self.state(self.specs[theirs[same]]) != "finished":
            return False
        if not self.mounted(target):
            return self.state(target) in DONE
        return self.settled(target)

    def may_begin(self, spec: Spec) -> bool:
        """Say whether nothing stands before a node."""
        for parent, at in self.ancestors(spec):
            before = parent.children[:at] if parent.kind in ("seq", "loop") else []
            if not all(self.done(sibling) for sibling in before):
                return False
            if parent.kind == "loop" and self.state(parent) != "finished":
                if self.state(parent) != "pending":
                    return False
                if not all(self.dependency_met(parent, name) for name in parent.deps):
                    return False
        return all(self.dependency_met(spec, name) for name in spec.deps)

    def failures(self) -> list[Spec]:
        """Give the nodes whose failure fails the run."""
        return [
            each
            for each in self.rowed(self.world.root)
            if self.state(each) == "failed" and not self.settled(each)
        ]

    def expect(self) -> Expectation:
        """Say what a plan must decide."""
        if self.failures():
            return self._wind_down()
        found = Expectation(settles=True)
        self._settle(found)
        if found.moves or found.statics:
            return found
        found.settles = False
        self._act(found)
        return found

    def _wind_down(self) -> Expectation:
        keys = {self.key(each) for each in self.rowed(self.world.root)}
        found = Expectation()
        for key, cell in self.world.cells.items():
            if cell.state == "ready" and not cell.in_progress:
                found.moves.add((key, "ready", "pending" if key in keys else "cancelled"))
        flying = any(cell.in_progress for cell in self.world.cells.values())
        found.status = "running" if flying else "failed"
        return found

    def _settle(self, found: Expectation) -> None:
        inbox = list(self.world.signals)
        for spec in self.rowed(self.world.root):
            if spec.is_leaf:
                self._settle_leaf(spec, found, inbox)
            elif self.state(spec) == "cancelled":
                found.moves.add((self.key(spec), "cancelled", "pending"))
            elif self.state(spec) == "pending" and self.may_begin(spec):
                self.judge(spec, found)

    def judge(self, loop: Spec, found: Expectation) -> None:
        """Decide about a loop, if its pass is done."""
        body = [each for child in loop.children for each in self.rowed(child)]
        key = self.key(loop)
        until = key[1] + 1 >= loop.until
        if not all(self.settled(each) for each in body) or not (body or until):
            return
        if until or key[1] + 1 >= loop.max:
            failed = not until and loop.fail_on_max
            found.moves.add((key, "pending", "failed" if failed else "finished"))
        else:
            found.moves.add((key, "pending", "finished"))
            found.advanced.add((key[0], key[1] + 1))

    def _settle_leaf(self, spec: Spec, found: Expectation, inbox: list[tuple[int, str]]) -> None:
        key = self.key(spec)
        cell = self.world.cells.get(key) or Cell("pending")
        old = cell.state
        new: str | None = None
        if old == "cancelled":
            new = "pending"
        elif old == "waiting-quota":
            new = "pending" if cell.due == -1 else None
        elif old in WAITS or (old == "pending" and self.may_begin(spec)):
            if old == "pending" and spec.skip:
                new = "skipped"
            elif old == "pending" and cell.due == 1:
                new = None
            else:
                new = self._verdict(spec, key, cell, found, inbox)
        if new is not None:
            found.moves.add((key, old, new))

    def _verdict(
        self, spec: Spec, key: Key, cell: Cell, found: Expectation, inbox: list[tuple[int, str]]
    ) -> str | None:
        """Say what people, signals and the clock make of a node."""
        if spec.ask or spec.kind == "approval":
            passed = "finished" if spec.kind == "approval" else "pending"
            new = {"approved": passed, "denied": "failed", "expired": "failed"}.get(cell.fact or "")
            return None if new == cell.state else new
        match spec.kind, cell.fact:
            case ("static", _):
                found.statics |= {key} if cell.state == "pending" else set()
            case ("human", "good") | ("timer", "fired") | ("event", "consumed"):
                return "finished"
            case ("human", "bad" | "expired"):
                return "failed"
            case ("event", fact):
                for each in [each for each in inbox if each[1] == signal_name(spec)][:1]:
                    inbox.remove(each)
                    found.consumed[key] = each[0]
                    return "finished"
                over = fact == "expired" and cell.state == "waiting-event"
                return "failed" if over else None
            case _:
                pass
        return None

    def _act(self, found: Expectation) -> None:
        world, leaves = self.world, [s for s in self.rowed(self.world.root) if s.is_leaf]
        keys = {self.key(spec) for spec in self.rowed(world.root)}
        for key, cell in world.cells.items():
            gone = (cell.state == "ready" and not cell.in_progress) or cell.state in WAITS
            if key not in keys and gone:
                found.moves.add((key, cell.state, "cancelled"))
        wants: list[Spec] = []
        for spec in leaves:
            key = self.key(spec)
            cell = world.cells.get(key) or Cell("pending")
            if cell.state != "pending" or cell.due == 1 or not self.may_begin(spec):
                continue
            if spec.kind == "task" and (not spec.ask or cell.fact == "approved"):
                wants.append(spec)
            elif spec.kind == "event":
                found.moves.add((key, "pending", "waiting-event"))
            elif spec.kind == "timer":
                found.moves.add((key, "pending", "waiting-timer"))
            else:
                found.moves.add((key, "pending", "waiting-approval"))
        self._choose(wants, found)
        found.status = self._status(found)

    def _choose(self, wants: list[Spec], found: Expectation) -> None:
        cancelled = {key for key, old, _ in found.moves if old == "ready"}
        for urgency in sorted({spec.priority for spec in wants}, reverse=True):
            for spec in [each for each in wants if each.priority == urgency]:
                busy = {k for k, c in self.world.cells.items() if c.state == "ready"} - cancelled
                busy |= set(found.ready)
                if self.world.cap is not None and len(busy) >= self.world.cap:
                    continue
                groups = [p for p, _ in self.ancestors(spec) if p.cap is not None]
                free = all(
                    sum(self.key(each) in busy for each in self.rowed(group)) < (group.cap or 0)
                    for group in groups
                )
                if free:
                    found.ready.append(self.key(spec))

    def _status(self, found: Expectation) -> str:
        new = {key: state for key, _, state in found.moves} | dict.fromkeys(found.ready, "ready")
        if "ready" in [new.get(key, cell.state) for key, cell in self.world.cells.items()]:
            return "running"
        states = {self.key(s): self.state(s) for s in self.rowed(self.world.root)}
        after = {key: new.get(key, state) for key, state in states.items()}
        for key, state in after.items():
            cell = self.world.cells.get(key)
            if state == "ready" or (state == "pending" and cell is not None and cell.due == 1):
                return "running"
        for wait in WAITS:
            if wait in after.values():
                return wait
        return "finished" if self.done(self.world.root) else "failed"
