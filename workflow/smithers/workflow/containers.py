"""Containers: what order their children take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from smithers.workflow.errors import INVALID_VALUE, AuthorError
from smithers.workflow.keys import check_loop_id
from smithers.workflow.nodes import (
    Child,
    Condition,
    Dependency,
    Node,
    call_site,
    children_of,
    ids_of,
    limit,
    put,
)

LOOP_MAX = 5
OnMax = Literal["return-last", "fail"]


@dataclass(frozen=True, slots=True, init=False)
class Container(Node):
    """A node with children; `places` are their numbers as the author gave them."""

    children: tuple[Node, ...]
    places: tuple[int, ...]

    def __hash__(self) -> int:
        return hash(self.places)


@dataclass(frozen=True, slots=True, init=False)
class Sequence(Container):
    """Children one after another: each waits until all earlier ones are done."""

    def __init__(self, *children: Child) -> None:
        _put_children(self, "Sequence", children)


@dataclass(frozen=True, slots=True, init=False)
class Parallel(Container):
    """Children side by side; at most `max_concurrency` tasks inside it run at once."""

    max_concurrency: int | None

    def __init__(self, *children: Child, max_concurrency: int | None = None) -> None:
        _put_children(self, "Parallel", children)
        cap = max_concurrency
        checked = None if cap is None else limit(cap, "max_concurrency of Parallel")
        put(self, "max_concurrency", checked)


@dataclass(frozen=True, slots=True, init=False)
class Branch(Container):
    """One of two children, chosen anew in every render; the other isn't mounted."""

    when: bool

    def __init__(self, when: Condition, then: Child, otherwise: Child = None) -> None:
        both = children_of("Branch", [then]), children_of("Branch", [otherwise])
        (nodes, places), offset = (both[0], 0) if when else (both[1], 1)
        put(self, "site", call_site())
        put(self, "when", bool(when))
        put(self, "children", nodes)
        put(self, "places", tuple(2 * place + offset for place in places))


@dataclass(frozen=True, slots=True, init=False)
class Loop(Container):
    """Children that are done again, pass by pass, until a condition holds.

    `until` is judged when everything in the pass is done. After `max_iterations` passes the
    loop ends as it is ("return-last") or fails with LOOP_EXHAUSTED ("fail"). An output in a
    loop is read in its current pass; `ctx.latest` looks back. Raises AuthorError.
    """

    id: str
    until: bool
    max_iterations: int
    on_max: OnMax
    depends_on: tuple[str, ...]

    def __init__(
        self,
        name: str,
        /,
        *children: Child,
        until: Condition,
        max_iterations: int = LOOP_MAX,
        on_max: OnMax = "return-last",
        depends_on: Dependency | Iterable[Dependency] = (),
    ) -> None:
        what = f"Loop {check_loop_id(name)!r}"
        if on_max not in ("return-last", "fail"):
            raise AuthorError(INVALID_VALUE, f"on_max of {what} is {on_max!r}")
        _put_children(self, what, children)
        put(self, "id", name)
        put(self, "until", bool(until))
        put(self, "max_iterations", limit(max_iterations, f"max_iterations of {what}"))
        put(self, "on_max", on_max)
        put(self, "depends_on", ids_of(what, depends_on))


def _put_children(node: Container, what: str, given: tuple[object, ...]) -> None:
    children, places = children_of(what, given)
    put(node, "site", call_site())
    put(node, "children", children)
    put(node, "places", places)
