"""Tasks: work that workers do, or a value that is known already."""

from __future__ import annotations

from collections import abc
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, NamedTuple, Unpack, cast, overload

from pydantic import BaseModel

from smithers.workflow.agent import AgentSpec
from smithers.workflow.errors import INVALID_NODE, INVALID_VALUE, AuthorError
from smithers.workflow.keys import check_id
from smithers.workflow.models import dump
from smithers.workflow.nodes import (
    Common,
    Ref,
    T_co,
    jsonable,
    model_of,
    put,
    put_common,
    refuse_unknown,
    seconds,
)
from smithers.workflow.retry import RETRIES, RetryPolicy
from smithers.workflow.states import NodeKind

DEFAULT_RETRY: Final = RetryPolicy()
DEFAULT_QUEUE: Final = "default"


class Need(NamedTuple):
    """A parameter that is filled from another node's output when the task is claimed."""

    param: str
    id: str
    output: type[BaseModel]
    kind: NodeKind


class TaskOptions(Common, total=False):
    """The keywords that every task takes beside the common ones.

    `needs` fills parameters from outputs, which are waited for. `retries` counts tries after
    the first. Durations are seconds or timedeltas. `needs_approval` asks a person before the
    task may start; a string is the title that is shown. `isolate` gives each attempt a
    process of its own.
    """

    needs: Mapping[str, Ref[BaseModel]]
    retries: int
    retry_policy: RetryPolicy
    timeout: timedelta | float | None
    heartbeat_timeout: timedelta | float | None
    needs_approval: bool | str
    queue: str
    priority: int
    isolate: bool


OPTION_NAMES: Final = TaskOptions.__required_keys__ | TaskOptions.__optional_keys__


@dataclass(frozen=True, slots=True, init=False)
class Task(Ref[T_co], Generic[T_co]):
    """One piece of work with a typed output, and the reference to that output.

    Exactly one of `agent` (with `prompt`), `run` (with `args`) and `value` says what it is.
    Raises AuthorError for anything that can't be stored or run; the message names the task.
    """

    run: Callable[..., object] | None
    args: dict[str, object]
    value: dict[str, object] | None
    agents: tuple[AgentSpec, ...]
    prompt: str | None
    needs: tuple[Need, ...]
    retries: int
    retry: RetryPolicy
    timeout: float | None
    heartbeat_timeout: float | None
    needs_approval: str | None
    queue: str
    priority: int
    isolate: bool

    @overload
    def __init__(
        self,
        name: str,
        output: type[T_co],
        /,
        *,
        agent: AgentSpec | abc.Sequence[AgentSpec],
        prompt: str,
        **options: Unpack[TaskOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        output: type[T_co],
        /,
        *,
        run: Callable[..., T_co | Awaitable[T_co]],
        args: Mapping[str, object] | None = None,
        **options: Unpack[TaskOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        output: type[T_co],
        /,
        *,
        value: T_co,
        **options: Unpack[TaskOptions],
    ) -> None: ...
    def __init__(
        self,
        name: str,
        output: type[T_co],
        /,
        *,
        agent: AgentSpec | abc.Sequence[AgentSpec] | None = None,
        prompt: str | None = None,
        run: Callable[..., object] | None = None,
        args: Mapping[str, object] | None = None,
        value: BaseModel | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        what = f"Task {check_id(name, 'Task')!r}"
        model_of(f"the output of {what}", output)
        refuse_unknown(what, options, OPTION_NAMES)
        put_common(self, what, options)
        agents = _agents(what, agent)
        put(
            self,
            id=name,
            output=output,
            kind=_kind(what, agents=agents, prompt=prompt, run=run, value=value),
            agents=agents,
            prompt=prompt,
            run=run,
            args=_args(what, run, args),
            value=None if value is None else _value(what, output, value),
        )
        _put_options(self, what, options)

    def __hash__(self) -> int:
        return hash(self.id)


def _put_options(task: Task[BaseModel], what: str, given: TaskOptions) -> None:
    timeout, heartbeat = given.get("timeout"), given.get("heartbeat_timeout")
    asked = given.get("needs_approval", False)
    put(
        task,
        needs=_needs(what, given.get("needs")),
        retries=_whole(what, "retries", given.get("retries", RETRIES), least=0),
        retry=given.get("retry_policy", DEFAULT_RETRY),
        timeout=None if timeout is None else seconds(timeout, f"timeout of {what}"),
        heartbeat_timeout=(
            None if heartbeat is None else seconds(heartbeat, f"heartbeat_timeout of {what}")
        ),
        needs_approval=asked if isinstance(asked, str) else f"Run {task.id}?" if asked else None,
        queue=_queue(what, given.get("queue", DEFAULT_QUEUE)),
        priority=_whole(what, "priority", given.get("priority", 0), least=-(2**31)),
        isolate=bool(given.get("isolate", False)),
    )


def _kind(
    what: str, *, agents: tuple[AgentSpec, ...], prompt: object, run: object, value: object
) -> NodeKind:
    kinds = [
        kind
        for kind, given in (
            (NodeKind.AGENT, bool(agents)),
            (NodeKind.COMPUTE, run is not None),
            (NodeKind.STATIC, value is not None),
        )
        if given
    ]
    if len(kinds) != 1:
        raise AuthorError(INVALID_NODE, f"{what} takes exactly one of agent=, run= and value=")
    if (prompt is not None) != (kinds[0] is NodeKind.AGENT) or not isinstance(prompt or "", str):
        raise AuthorError(INVALID_NODE, f"{what}: agent= and a prompt= string go together")
    return kinds[0]


def _agents(what: str, given: object) -> tuple[AgentSpec, ...]:
    if given is None:
        return ()
    if isinstance(given, AgentSpec):
        return (given,)
    several = list(cast("Iterable[object]", given)) if isinstance(given, list | tuple) else [given]
    agents = tuple(each for each in several if isinstance(each, AgentSpec))
    if not agents or len(agents) != len(several):
        raise AuthorError(
            INVALID_VALUE,
            f"agent= of {what} holds {given!r}, which isn't an agent or a list of agents",
            hint="Use the functions of smithers.agents, or AgentSpec(kind, …).",
        )
    return agents


def _args(what: str, run: object, args: Mapping[str, object] | None) -> dict[str, object]:
    if not args:
        return {}
    if run is None:
        raise AuthorError(INVALID_NODE, f"{what}: args= goes with run= only")
    return jsonable(args, f"args of {what}")


def _value(what: str, output: type[BaseModel], value: object) -> dict[str, object]:
    if not isinstance(value, output):
        raise AuthorError(
            INVALID_VALUE,
            f"value of {what} is a {type(value).__name__}, not a {output.__name__}",
        )
    try:
        return dump(value)
    except ValueError as error:
        raise AuthorError(
            INVALID_VALUE, f"value of {what} can't be stored as JSON: {error}"
        ) from error


def _needs(what: str, given: Mapping[str, Ref[BaseModel]] | None) -> tuple[Need, ...]:
    if not given:
        return ()
    for param, ref in cast("Mapping[str, object]", given).items():
        if not isinstance(ref, Ref):
            raise AuthorError(
                INVALID_NODE,
                f"needs of {what}: {param!r} is a {type(ref).__name__}, not a task or a wait",
            )
    return tuple(Need(param, ref.id, ref.output, ref.kind) for param, ref in given.items())


def _whole(what: str, name: str, value: object, *, least: int) -> int:
    if type(value) is not int or not least <= value < 2**31:
        raise AuthorError(INVALID_VALUE, f"{name} of {what} is {value!r}, not a whole number")
    return value


def _queue(what: str, name: object) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise AuthorError(INVALID_VALUE, f"queue of {what} is {name!r}, not a name")
    return name
