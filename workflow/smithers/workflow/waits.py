"""Waits: nodes that end by a person, a signal or the clock, and run nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, Unpack, overload

from pydantic import BaseModel

from smithers.workflow.errors import INVALID_NODE, INVALID_VALUE, AuthorError
from smithers.workflow.keys import check_id
from smithers.workflow.models import Decision, Event, Fired
from smithers.workflow.nodes import (
    Common,
    Ref,
    T_co,
    model_of,
    put,
    put_common,
    refuse_unknown,
    seconds,
)
from smithers.workflow.states import NodeKind

COMMON_NAMES: Final = Common.__required_keys__ | Common.__optional_keys__


@dataclass(frozen=True, slots=True, init=False)
class Wait(Ref[T_co], Generic[T_co]):
    """A node that runs nowhere."""

    timeout: float | None

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, slots=True, init=False)
class Approval(Wait[Decision]):
    """A question to a person: approved finishes the node, denied fails it (APPROVAL_DENIED).

    With `continue_on_fail` the run goes on after a denial, and the decision can be read.
    Raises AuthorError.
    """

    title: str
    summary: str

    def __init__(
        self,
        node_id: str,
        /,
        *,
        title: str = "",
        summary: str = "",
        timeout: timedelta | float | None = None,
        **common: Unpack[Common],
    ) -> None:
        _put_wait(self, node_id, Decision, NodeKind.APPROVAL, timeout=timeout, common=common)
        put(self, "title", title or f"Approve {node_id}?")
        put(self, "summary", summary)

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, slots=True, init=False)
class HumanTask(Wait[T_co], Generic[T_co]):
    """A question whose answer is a model that a person fills in. Raises AuthorError."""

    prompt: str

    def __init__(
        self,
        node_id: str,
        output: type[T_co],
        /,
        *,
        prompt: str,
        timeout: timedelta | float | None = None,
        **common: Unpack[Common],
    ) -> None:
        _put_wait(self, node_id, output, NodeKind.HUMAN, timeout=timeout, common=common)
        put(self, "prompt", prompt)

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, slots=True, init=False)
class WaitForEvent(Wait[T_co], Generic[T_co]):
    """A wait that takes the first signal of its name that nobody has taken and that fits.

    The signal's name is the id, unless `name` says another. A payload that doesn't fit the
    model stays in the inbox, and `why` says what is wrong with it. Raises AuthorError.
    """

    name: str

    @overload
    def __init__(
        self: WaitForEvent[Event],
        node_id: str,
        /,
        *,
        name: str = "",
        timeout: timedelta | float | None = None,
        **common: Unpack[Common],
    ) -> None: ...
    @overload
    def __init__(
        self,
        node_id: str,
        output: type[T_co],
        /,
        *,
        name: str = "",
        timeout: timedelta | float | None = None,
        **common: Unpack[Common],
    ) -> None: ...
    def __init__(
        self,
        node_id: str,
        output: type[BaseModel] = Event,
        /,
        *,
        name: str = "",
        timeout: timedelta | float | None = None,
        **common: Unpack[Common],
    ) -> None:
        _put_wait(self, node_id, output, NodeKind.EVENT, timeout=timeout, common=common)
        put(self, "name", check_id(name or node_id, "WaitForEvent name"))

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, slots=True, init=False)
class Timer(Wait[Fired]):
    """A wait of a duration from when its turn comes, or until an aware datetime.

    Raises AuthorError.
    """

    seconds: float | None
    until: datetime | None

    def __init__(
        self,
        node_id: str,
        seconds: timedelta | float | None = None,
        /,
        *,
        until: datetime | None = None,
        **common: Unpack[Common],
    ) -> None:
        _put_wait(self, node_id, Fired, NodeKind.TIMER, timeout=None, common=common)
        if (seconds is None) == (until is None):
            raise AuthorError(INVALID_NODE, f"Timer {node_id!r} takes either a duration or until=")
        put(self, "seconds", _duration(node_id, seconds))
        put(self, "until", _aware(node_id, until))

    def __hash__(self) -> int:
        return hash(self.id)


def _put_wait(
    node: Wait[BaseModel],
    node_id: str,
    output: type[BaseModel],
    kind: NodeKind,
    *,
    timeout: timedelta | float | None,
    common: Common,
) -> None:
    what = f"{type(node).__name__} {check_id(node_id, type(node).__name__)!r}"
    model_of(what, output)
    refuse_unknown(what, common, COMMON_NAMES)
    put_common(node, what, common)
    put(node, "id", node_id)
    put(node, "output", output)
    put(node, "kind", kind)
    limit = None if timeout is None else seconds(timeout, f"timeout of {what}")
    put(node, "timeout", limit)


def _duration(node_id: str, value: timedelta | float | None) -> float | None:
    return None if value is None else seconds(value, f"duration of Timer {node_id!r}")


def _aware(node_id: str, until: object) -> datetime | None:
    if until is None:
        return None
    if not isinstance(until, datetime) or until.tzinfo is None or until.utcoffset() is None:
        raise AuthorError(
            INVALID_VALUE,
            f"until of Timer {node_id!r} is {until!r}, which has no time zone",
            hint="Use datetime(…, tzinfo=UTC).",
        )
    return until
