"""Which nodes of a tree are shown where not all fit: what is quiet is counted instead. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from smithers.cli.progress_model import Place, Row, command_for
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import WAITING_NODES, AttemptState, NodeState


class Mark(StrEnum):
    """How a node stands, in the words of a count; in the order in which they are worth a line."""

    FAILED = "failed"
    WAITING = "waiting"
    RUNNING = "running"
    PENDING = "pending"
    FINISHED = "finished"
    LEFT_OUT = "left out"


Tally: TypeAlias = Counter[Mark]

_MARKS: Final[Mapping[NodeState | AttemptState, Mark]] = {
    NodeState.FAILED: Mark.FAILED,
    **dict.fromkeys(WAITING_NODES, Mark.WAITING),
    AttemptState.IN_PROGRESS: Mark.RUNNING,
    NodeState.FINISHED: Mark.FINISHED,
    NodeState.SKIPPED: Mark.LEFT_OUT,
    NodeState.CANCELLED: Mark.LEFT_OUT,
}
_WORTH: Final = {mark: worth for worth, mark in enumerate(Mark)}
_OVER: Final = frozenset({Mark.FINISHED, Mark.LEFT_OUT})
_QUIET: Final = _OVER | {Mark.PENDING}
_ONE: Final[Mapping[Mark, Tally]] = {mark: Counter({mark: 1}) for mark in Mark}
_NONE: Final[Tally] = Counter()
_KEPT: Final = (8, 4, 2, 1, 0)
_TERSE: Final = (5, 3, 2, 1)


class Shown(NamedTuple):
    """A line: a place, the command that ends its wait, or (no place) what is only counted.

    `whole` says that the children of a place follow; else its tally stands for them.
    """

    depth: int
    place: Place | None
    tally: Tally
    whole: bool = True
    command: str | None = None
    more: int = 0


@dataclass(frozen=True, slots=True)
class _Rule:
    """What is folded: stretches of siblings of the marks `quiet`, but for the `keep` next to what
    goes on, or all that are quiet `together`; what is beyond the `most` siblings that matter;
    everything below `depth`.
    """

    quiet: frozenset[Mark] = frozenset()
    keep: int = 0
    together: bool = False
    most: int | None = None
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class Forest:
    """A tree with its rows: marks and tallies of places are worked out once."""

    run_id: str
    rows: Mapping[NodeKey, Row]
    marks: dict[Place, Mark]
    tallies: dict[Place, Tally]

    @classmethod
    def grown(cls, run_id: str, root: Place, rows: Mapping[NodeKey, Row]) -> Forest:
        """Work out how every place below a root stands."""
        forest = cls(run_id, rows, {}, {})
        forest._count(root)
        return forest

    def add(self, tally: Tally, place: Place) -> None:
        """Add what is below a place to a tally."""
        if place.children:
            tally.update(self.tallies[place])
        elif place.key:
            tally[self.marks[place]] += 1

    def _count(self, place: Place) -> None:
        row = self.rows.get(place.key) if place.key else None
        own = _MARKS.get(row.state, Mark.PENDING) if row else Mark.PENDING
        if not place.children:
            mark, tally = (own, _ONE[own]) if place.key else (Mark.FINISHED, _NONE)
        else:
            tally = Counter[Mark]()
            for child in place.children:
                self._count(child)
                self.add(tally, child)
            mark = own if own in _OVER or own is Mark.FAILED else _mark_of(tally)
        self.marks[place], self.tallies[place] = mark, tally


def fold(forest: Forest, root: Place, height: int) -> list[Shown]:
    """Give at most `height` lines for what is below a root, as much of it as fits."""
    rule = _Rule()
    for rule in _rules(_depth_of(root)):
        found = list(islice(_below(forest, root, 0, rule), height + 1))
        if len(found) <= height:
            return found
    found = list(_below(forest, root, 0, rule))
    kept = found[: max(0, height - 1)]
    return [*kept, Shown(0, None, _NONE, more=len(found) - len(kept))][:height]


def _rules(depth: int) -> Iterator[_Rule]:
    yield _Rule()
    for quiet in (_OVER, _QUIET):
        for keep in _KEPT:
            yield _Rule(quiet, keep)
    yield _Rule(_QUIET, together=True)
    for most in _TERSE:
        yield _Rule(_QUIET, together=True, most=most)
    for level in range(depth - 1, 0, -1):
        yield _Rule(_QUIET, together=True, most=1, depth=level)


def _below(forest: Forest, parent: Place, depth: int, rule: _Rule) -> Iterator[Shown]:
    loud = _loud(forest, parent.children, rule)
    stretch: list[Place] = []
    for child in parent.children:
        if child in loud:
            if not rule.together:
                yield from _folded(forest, stretch, depth, rule)
                stretch = []
            yield from _one(forest, child, depth, rule)
            continue
        over = forest.marks[child] in _OVER
        if stretch and not rule.together and over is not (forest.marks[stretch[-1]] in _OVER):
            yield from _folded(forest, stretch, depth, rule)
            stretch = []
        stretch.append(child)
    yield from _folded(forest, stretch, depth, rule)


def _loud(forest: Forest, children: Sequence[Place], rule: _Rule) -> set[Place]:
    """Which of some siblings get a line of their own."""
    loud = [child for child in children if forest.marks[child] not in rule.quiet]
    if rule.most is not None and len(loud) > rule.most:
        loud = sorted(loud, key=lambda child: _WORTH[forest.marks[child]])[: rule.most]
    return set(loud)


def _one(forest: Forest, place: Place, depth: int, rule: _Rule) -> Iterator[Shown]:
    whole = bool(place.children) and (rule.depth is None or depth + 1 < rule.depth)
    yield Shown(depth, place, forest.tallies[place], whole)
    row = forest.rows.get(place.key) if place.key else None
    command = command_for(forest.run_id, row) if row else None
    if command:
        yield Shown(depth + 1, None, _NONE, command=command)
    if whole:
        yield from _below(forest, place, depth + 1, rule)


def _folded(forest: Forest, places: list[Place], depth: int, rule: _Rule) -> Iterator[Shown]:
    """One line for the siblings of a stretch: of those that are over the last ones are kept, of
    others the first. What is below a kept one is not shown, and one alone is always kept.
    """
    keep = len(places) if len(places) - rule.keep <= 1 else rule.keep
    over = bool(places) and forest.marks[places[-1]] in _OVER
    cut = len(places) - keep if over else keep
    gone = places[:cut] if over else places[cut:]
    shown = places[cut:] if over else places[:cut]
    kept = [Shown(depth, each, forest.tallies[each], whole=False) for each in shown]
    tally = Counter[Mark]()
    for place in gone:
        forest.add(tally, place)
    summary = [Shown(depth, None, tally)] if gone else []
    yield from (*summary, *kept) if over else (*kept, *summary)


def _mark_of(tally: Tally) -> Mark:
    for mark in (Mark.FAILED, Mark.RUNNING, Mark.WAITING, Mark.PENDING, Mark.FINISHED):
        if tally[mark]:
            return mark
    return Mark.LEFT_OUT if tally else Mark.FINISHED


def _depth_of(place: Place) -> int:
    return 1 + max(map(_depth_of, place.children), default=0)
