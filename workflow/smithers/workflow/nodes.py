"""The values that a render returns: what every node shares, references, and children.

Nodes are frozen and compare by value. Where one was written down is kept beside it for
error messages and takes no part in comparison.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import FrameType
from typing import Final, Generic, Literal, TypeAlias, TypedDict, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from smithers.workflow.errors import INVALID_MODEL, INVALID_NODE, INVALID_VALUE, AuthorError
from smithers.workflow.states import NodeKind

T_co = TypeVar("T_co", bound=BaseModel, covariant=True)

CallSite: TypeAlias = tuple[str, int]
TEXT: Final[frozenset[type]] = frozenset({str})
PLAIN: Final[frozenset[type]] = frozenset({str, int, bool, type(None)})
PACKAGE: Final = __name__.rpartition(".")[0]


@dataclass(frozen=True, slots=True, init=False)
class Node:
    """Anything that a workflow may return or hold as a child."""

    site: CallSite = field(compare=False, repr=False)


Child: TypeAlias = Node | BaseModel | Literal[False] | Iterable[Node | None] | None
"""What may stand where a child is asked for. A falsy child is dropped.

Models and False are here for `output and Task(…)` alone; a model that arrives is refused.
"""

Condition: TypeAlias = BaseModel | bool | None
"""What may stand where a truth is asked for: `last and last.approved` has this type."""


@dataclass(frozen=True, slots=True, init=False)
class Ref(Node, Generic[T_co]):
    """A node that gives an output of a known model: a task or a wait."""

    id: str
    output: type[T_co]
    kind: NodeKind
    skip_if: bool
    depends_on: tuple[str, ...]
    continue_on_fail: bool
    label: str
    meta: dict[str, object]

    def __hash__(self) -> int:
        return hash(self.id)


Dependency: TypeAlias = Node | str
"""A task, wait or loop, or its id."""


def call_site() -> CallSite:
    """Give the file and line outside this package that is making a node."""
    # The first frames are this function and the constructor that called it.
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001  what inspect calls, but quicker
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(PACKAGE):
            return (frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return ("", 0)


def children_of(what: str, given: Iterable[object]) -> tuple[tuple[Node, ...], tuple[int, ...]]:
    """Flatten one level, drop what is falsy, and number what is left by its place as given.

    A dropped child keeps its number, so that the paths of its siblings stay the same when
    it appears. Raises AuthorError (INVALID_NODE), naming the place.
    """
    nodes: list[Node] = []
    places: list[int] = []
    place = 0
    for child in given:
        if isinstance(child, Node):
            nodes.append(child)
            places.append(place)
            place += 1
            continue
        inner = _several(what, place, child)
        for item in inner:
            if isinstance(item, Node):
                nodes.append(item)
                places.append(place)
            elif item is not None and item is not False:
                raise _no_child(what, place, item)
            place += 1
        place += not inner
    return tuple(nodes), tuple(places)


def _several(what: str, place: int, child: object) -> list[object]:
    if child is None or child is False:
        return []
    if isinstance(child, BaseModel | str | bytes | dict):
        if isinstance(child, BaseModel) or child:
            raise _no_child(what, place, cast("object", child))
        return []
    if isinstance(child, Iterable):
        return list(cast("Iterable[object]", child))
    if not child:
        return []
    raise _no_child(what, place, child)


def _no_child(what: str, place: int, child: object) -> AuthorError:
    kind = type(child).__name__
    is_model = isinstance(child, BaseModel)
    return AuthorError(
        INVALID_NODE,
        f"child {place} of {what} is a {kind}, which isn't a node",
        details={"parent": what, "place": place, "type": kind},
        hint="Write `output and Task(…)`: the model itself can't be mounted." if is_model else None,
    )


def seconds(value: timedelta | float, what: str) -> float:
    """Give a duration in seconds; raises AuthorError (INVALID_VALUE)."""
    given: object = value.total_seconds() if isinstance(value, timedelta) else value
    if type(given) not in (int, float) or not 0 <= cast("float", given) < 1e10:
        raise AuthorError(INVALID_VALUE, f"{what} is {value!r}, not a duration of 0 or more")
    return float(cast("float", given))


def limit(value: object, what: str) -> int:
    """Give a number that is 1 or more; raises AuthorError (INVALID_VALUE)."""
    if type(value) is not int or value < 1:
        raise AuthorError(INVALID_VALUE, f"{what} is {value!r}, not a whole number of 1 or more")
    return value


def ids_of(what: str, given: Dependency | Iterable[Dependency]) -> tuple[str, ...]:
    """Give the ids that dependencies name; raises AuthorError (INVALID_NODE)."""
    several: Iterable[Dependency] = (given,) if isinstance(given, Node | str) else given
    found: list[str] = []
    for each in several:
        name: object = each if isinstance(each, str) else getattr(each, "id", None)
        if not isinstance(name, str):
            raise AuthorError(
                INVALID_NODE,
                f"{what} depends on a {type(each).__name__}, which has no id",
                hint="Depend on tasks, waits and loops.",
            )
        found.append(name)
    return tuple(dict.fromkeys(found))


class Common(TypedDict, total=False):
    """The keywords that every task and wait takes.

    `depends_on` names what must be done first, across the tree. `skip_if` ends the node as
    skipped when its turn comes; its output is None. `continue_on_fail` lets the run go on
    when the node fails. `label` and `meta` (JSON-able) are for people and programs.
    """

    depends_on: Dependency | Iterable[Dependency]
    skip_if: Condition
    continue_on_fail: bool
    label: str
    meta: Mapping[str, object]


put: Final = object.__setattr__
"""Sets a field of a frozen node that is being made."""


def put_common(node: Ref[BaseModel], what: str, given: Common) -> None:
    """Set the site and the fields of the common keywords; raises AuthorError."""
    put(node, "site", call_site())
    if not given:
        put(node, "skip_if", False)  # noqa: FBT003  a value, not a flag
        put(node, "depends_on", ())
        put(node, "continue_on_fail", False)  # noqa: FBT003
        put(node, "label", "")
        put(node, "meta", {})
        return
    depends_on, meta = given.get("depends_on"), given.get("meta")
    put(node, "skip_if", bool(given.get("skip_if", False)))
    put(node, "depends_on", () if depends_on is None else ids_of(what, depends_on))
    put(node, "continue_on_fail", bool(given.get("continue_on_fail", False)))
    put(node, "label", given.get("label", ""))
    put(node, "meta", jsonable(meta, f"meta of {what}") if meta else {})


def refuse_unknown(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise AuthorError (INVALID_NODE) if a keyword isn't known."""
    for name in given:
        if name not in known:
            raise AuthorError(INVALID_NODE, f"{what} takes no keyword {name!r}")


def model_of(what: str, output: object) -> None:
    """Raise AuthorError (INVALID_MODEL) if an output isn't a pydantic model class."""
    if not (isinstance(output, type) and issubclass(output, BaseModel)):
        raise AuthorError(
            INVALID_MODEL, f"{what} takes a pydantic model class, and {output!r} is none"
        )


def jsonable(value: Mapping[str, object], what: str) -> dict[str, object]:
    """Give a mapping as plain JSON data; raises AuthorError (INVALID_VALUE)."""
    if PLAIN.issuperset(map(type, value.values())) and TEXT.issuperset(map(type, value)):
        return dict(value)
    try:
        return cast("dict[str, object]", to_jsonable_python(dict(value)))
    except (PydanticSerializationError, TypeError, ValueError) as error:
        raise AuthorError(INVALID_VALUE, f"{what} can't be stored as JSON: {error}") from error
