"""Random trees: what Hypothesis draws, and the author's nodes that they stand for."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st
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


class Out(BaseModel):
    """The output of every task."""

    n: int = 0


class Answer(BaseModel):
    """The output of every human task."""

    text: str


def work() -> Out:
    """Stand for a task's function."""
    raise NotImplementedError


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


def streams(most: int) -> st.SearchStrategy[bytes]:
    """Draw streams for `Bits`: evenly random, and shrunk by cutting their ends."""
    seeds = st.integers(0, 2**32)
    return st.builds(
        lambda seed, size: random.Random(seed).randbytes(most)[:size], seeds, st.integers(0, most)
    )


def tree(data: bytes, *, depth: int = 3) -> Spec:
    """Make a tree of bytes."""
    bits = Bits(data)
    counter = iter(range(10_000))
    root = Spec("seq", "root", [_node(bits, counter, depth) for _ in range(1 + bits.next(4))])
    chains = dict(chains_of(root))
    names = [spec.id for spec, _ in walk(root) if spec.kind not in ("seq", "par")]
    for spec, _ in list(walk(root)):
        if spec.kind in ("seq", "par"):
            continue
        if bits.chance(3):
            # What stands in a loop of its own is the hard case.
            inside = [name for name in names if len(chains[name]) > len(chains[spec.id])]
            choices = inside if inside and bits.chance(2) else [*names, "ghost"]
            spec.deps.append(choices[bits.next(len(choices))])
    for spec, _ in walk(root):
        _conditions(spec, bits)
    return root


def _conditions(parent: Spec, bits: Bits) -> None:
    """Let leaves of a sequence appear when an earlier task of it has an output.

    Anywhere else it would depend on the order of events whether they come in time.
    """
    earlier: list[str] = []
    for child in parent.children if parent.kind in ("seq", "loop") else []:
        if child.is_leaf and earlier and bits.chance(5):
            child.when = earlier[bits.next(len(earlier))]
        if child.kind in ("task", "static"):
            earlier.append(child.id)


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
        return Spec("par", f"p{number}", children, cap=[None, 1, 1, 2][bits.next(4)])
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


def chains_of(root: Spec) -> Iterator[tuple[str, Chain]]:
    """Give the loops around each node."""
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


def describe(root: Spec) -> str:
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

    add(root, 0)
    return "\n".join(lines)
