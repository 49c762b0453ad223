"""A second opinion on plans: what a tree means, said as slowly and plainly as possible.

Trees are generated as `Spec`s from bytes. `expect` says by brute force what a plan must
decide for given rows: every question is answered by looking at the whole tree again.
`ideal` says how a run must end. Nothing here uses the planner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from smithers.workflow import (
    Approval,
    HumanTask,
    Loop,
    Node,
    Parallel,
    Ref,
    Sequence,
    Task,
    Timer,
    WaitForEvent,
)

Key = tuple[str, int]
Chain = tuple[str, ...]
DONE = {"finished", "skipped"}
WAITS = ("waiting-approval", "waiting-event", "waiting-quota", "waiting-timer")


class Out(BaseModel):
    """The output of every task."""

    n: int = 0


class Answer(BaseModel):
    """The output of every human task."""

    text: str


def work() -> Out:
    """Stand for a task's function."""
    raise NotImplementedError


# ── trees from bytes ──


class Bits:
    """A stream of small numbers; when it has run dry it gives zeros, which mean little trees."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def next(self, below: int) -> int:
        """Give a number below a bound."""
        byte = self.data[self.at] if self.at < len(self.data) else 0
        self.at += 1
        return byte % below

    def chance(self, one_in: int) -> bool:
        """Say yes now and then; never when it has run dry."""
        return self.next(one_in) == one_in - 1

    @property
    def dry(self) -> bool:
        """Whether all bytes are used."""
        return self.at >= len(self.data)


@dataclass
class Spec:
    """One node of a generated tree."""

    kind: str
    id: str
    children: list[Spec] = field(default_factory=list["Spec"])
    deps: list[str] = field(default_factory=list[str])
    skip: bool = False
    tolerant: bool = False
    ask: bool = False
    cap: int | None = None
    until: int = 1
    max: int = 3
    fail_on_max: bool = False
    priority: int = 0
    timeout: bool = False
    when: str | None = None
    fate: int = 0

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return self.kind not in ("seq", "par", "loop")


LEAVES = ("task", "task", "task", "task", "static", "approval", "event", "timer", "human")


def tree(data: bytes, *, depth: int = 3) -> Spec:
    """Make a tree of bytes."""
    bits = Bits(data)
    counter = iter(range(10_000))
    root = Spec("seq", "root", [_node(bits, counter, depth) for _ in range(1 + bits.next(4))])
    chains = dict(_chains(root))
    names = [spec.id for spec, _ in walk(root) if spec.kind not in ("seq", "par")]
    for spec, _ in list(walk(root)):
        if spec.kind in ("seq", "par"):
            continue
        if bits.chance(4):
            spec.deps.append([*names, "ghost"][bits.next(len(names) + 1)])
        peers = [n for n in names if chains[n] == chains[spec.id] and n[0] == "t" and n != spec.id]
        if spec.is_leaf and peers and bits.chance(8):
            spec.when = peers[bits.next(len(peers))]
    return root


def _node(bits: Bits, counter: Iterator[int], depth: int) -> Spec:
    shape = bits.next(10)
    if depth == 0 or bits.dry or shape < 5:
        return _leaf(bits, counter)
    count = bits.next(4) + (0 if bits.chance(6) else 1)
    number = next(counter)
    children = [_node(bits, counter, depth - 1) for _ in range(count)]
    if shape < 7:
        return Spec("seq", f"s{number}", children)
    if shape < 8:
        return Spec("par", f"p{number}", children, cap=[None, None, 1, 2][bits.next(4)])
    return Spec(
        "loop",
        f"l{number}",
        children,
        until=1 + bits.next(4),
        max=1 + bits.next(4),
        fail_on_max=bits.chance(8),
    )


def _leaf(bits: Bits, counter: Iterator[int]) -> Spec:
    kind = LEAVES[bits.next(len(LEAVES))]
    return Spec(
        kind,
        f"{'t' if kind in ('task', 'static') else kind}{next(counter)}",
        skip=bits.chance(9),
        tolerant=bits.chance(6),
        ask=kind == "task" and bits.chance(8),
        priority=[0, 0, 0, 1][bits.next(4)],
        timeout=bits.chance(3),
        fate=bits.next(12),
    )


def walk(spec: Spec, chain: Chain = ()) -> Iterator[tuple[Spec, Chain]]:
    """Give every node with the loops around it, in document order."""
    yield spec, chain
    inner = (*chain, spec.id) if spec.kind == "loop" else chain
    for child in spec.children:
        yield from walk(child, inner)


def _chains(root: Spec) -> Iterator[tuple[str, Chain]]:
    for spec, chain in walk(root):
        yield spec.id, chain


def build(spec: Spec, passes: Mapping[str, int], shown: Mapping[str, bool]) -> Node | None:
    """Give the author's node; `passes` are the loops' pass numbers, `shown` the mounted leaves."""
    if not shown.get(spec.id, True):
        return None
    children = [build(child, passes, shown) for child in spec.children]
    match spec.kind:
        case "seq":
            return Sequence(*children)
        case "par":
            return Parallel(*children, max_concurrency=spec.cap)
        case "loop":
            return Loop(
                spec.id,
                *children,
                until=passes.get(spec.id, 0) + 1 >= spec.until,
                max_iterations=spec.max,
                on_max="fail" if spec.fail_on_max else "return-last",
                depends_on=spec.deps,
            )
        case _:
            return leaf_of(spec)


def leaf_of(spec: Spec) -> Ref[BaseModel]:
    """Give the author's task or wait."""
    skip, deps, tolerant = spec.skip, spec.deps, spec.tolerant
    timeout = 60.0 if spec.timeout else None
    match spec.kind:
        case "task":
            return Task(
                spec.id,
                Out,
                run=work,
                skip_if=skip,
                depends_on=deps,
                continue_on_fail=tolerant,
                needs_approval=spec.ask,
                priority=spec.priority,
            )
        case "static":
            return Task(
                spec.id,
                Out,
                value=Out(n=1),
                skip_if=skip,
                depends_on=deps,
                continue_on_fail=tolerant,
            )
        case "approval":
            return Approval(
                spec.id, timeout=timeout, skip_if=skip, depends_on=deps, continue_on_fail=tolerant
            )
        case "human":
            return HumanTask(
                spec.id,
                Answer,
                prompt="?",
                timeout=timeout,
                skip_if=skip,
                depends_on=deps,
                continue_on_fail=tolerant,
            )
        case "event":
            return WaitForEvent(
                spec.id,
                name=signal_name(spec),
                timeout=timeout,
                skip_if=skip,
                depends_on=deps,
                continue_on_fail=tolerant,
            )
        case _:
            return Timer(spec.id, 60, skip_if=skip, depends_on=deps, continue_on_fail=tolerant)


def signal_name(spec: Spec) -> str:
    """Give the signal that an event waits for: a few share one."""
    return f"sig{spec.fate % 2}"


# ── rows, as the oracle sees them ──


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
        self.chains = dict(_chains(world.root))
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
            if parent.kind in ("seq", "loop"):
                if not all(self.done(sibling) for sibling in parent.children[:at]):
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
                self._judge(spec, found)

    def _judge(self, loop: Spec, found: Expectation) -> None:
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
        fact = cell.fact
        if spec.kind == "approval" or spec.ask:
            if fact in ("denied", "expired"):
                return "failed"
            if fact == "approved":
                if spec.kind == "approval":
                    return "finished"
                return "pending" if cell.state == "waiting-approval" else None
            return None
        if spec.kind == "static":
            if cell.state == "pending":
                found.statics.add(key)
            return None
        if spec.kind == "human":
            return {"good": "finished", "bad": "failed", "expired": "failed"}.get(fact or "")
        if spec.kind == "timer":
            return "finished" if fact == "fired" else None
        if spec.kind == "event":
            if fact == "consumed":
                return "finished"
            for each in inbox:
                if each[1] == signal_name(spec):
                    inbox.remove(each)
                    found.consumed[key] = each[0]
                    return "finished"
            return "failed" if cell.state == "waiting-event" and fact == "expired" else None
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


# ── how a run must end ──


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
        trimmed = Oracle(World(_without(root, hidden), world.cells))
        for spec in [s for s in trimmed.rowed(trimmed.world.root) if trimmed.state(s) == "pending"]:
            if not trimmed.may_begin(spec):
                continue
            changed |= _happen(spec, trimmed)
            if spec.kind == "loop" and changed:
                break  # keys have changed
        if not changed:
            return _ending(trimmed)


def _happen(spec: Spec, oracle: Oracle) -> bool:
    world, key = oracle.world, oracle.key(spec)
    if spec.is_leaf:
        bad = "failed" if fails(spec) else "finished"
        world.cells[key] = Cell("skipped" if spec.skip else bad)
        return True
    found = Expectation()
    oracle._judge(spec, found)
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


def _without(spec: Spec, hidden: set[str]) -> Spec:
    children = [_without(child, hidden) for child in spec.children if child.id not in hidden]
    return Spec(**{**vars(spec), "children": children})


def describe(value: Any) -> str:
    """Give a tree in a few lines, for failing examples."""
    lines: list[str] = []

    def add(spec: Spec, depth: int) -> None:
        plain = Spec(spec.kind, spec.id)
        options = {
            name: each
            for name, each in vars(spec).items()
            if name != "children" and each != getattr(plain, name)
        }
        lines.append(f"{'  ' * depth}{spec.kind} {spec.id} {options or ''}")
        for child in spec.children:
            add(child, depth + 1)

    add(value, 0)
    return "\n".join(lines)
