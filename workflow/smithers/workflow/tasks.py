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

DEFAULT_QUEUE: Final = "default"
DEFAULT_RETRY: Final = RetryPolicy()
KINDS: Final = (NodeKind.AGENT, NodeKind.COMPUTE, NodeKind.STATIC)


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


@dataclass(frozen=True, slots=True)
class Policy:
    """How a task is tried: what `TaskOptions` say, checked. Tasks without any share one."""

    retries: int = RETRIES
    retry: RetryPolicy = DEFAULT_RETRY
    timeout: float | None = None
    heartbeat_timeout: float | None = None
    needs_approval: str | None = None
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    isolate: bool = False


DEFAULT_POLICY: Final = Policy()


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
    policy: Policy

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
        model_of(what, output)
        agents = () if agent is None else _agents(what, agent)
        kind = _kind(what, agents=agents, prompt=prompt, run=run, value=value)
        put_common(self, what, options)
        put(self, "id", name)
        put(self, "output", output)
        put(self, "kind", kind)
        put(self, "agents", agents)
        put(self, "prompt", prompt)
        put(self, "run", run)
        put(self, "args", _args(what, run, args) if args else {})
        put(self, "value", None if value is None else _value(what, output, value))
        if options:
            refuse_unknown(what, options, OPTION_NAMES)
            put(self, "needs", _needs(what, options.get("needs")))
            put(self, "policy", _policy(what, name, options))
        else:
            put(self, "needs", ())
            put(self, "policy", DEFAULT_POLICY)

    def __hash__(self) -> int:
        return hash(self.id)


def _policy(what: str, name: str, given: TaskOptions) -> Policy:
    timeout, heartbeat = given.get("timeout"), given.get("heartbeat_timeout")
    asked = given.get("needs_approval", False)
    policy = Policy(
        retries=_whole(what, "retries", given.get("retries", RETRIES), least=0),
        retry=given.get("retry_policy", DEFAULT_RETRY),
        timeout=None if timeout is None else seconds(timeout, f"timeout of {what}"),
        heartbeat_timeout=(
            None if heartbeat is None else seconds(heartbeat, f"heartbeat_timeout of {what}")
        ),
        needs_approval=asked if isinstance(asked, str) else f"Run {name}?" if asked else None,
        queue=_queue(what, given.get("queue", DEFAULT_QUEUE)),
        priority=_whole(what, "priority", given.get("priority", 0), least=-(2**31)),
        isolate=bool(given.get("isolate", False)),
    )
    return DEFAULT_POLICY if policy == DEFAULT_POLICY else policy


def _kind(
    what: str, *, agents: tuple[AgentSpec, ...], prompt: object, run: object, value: object
) -> NodeKind:
    given = (bool(agents), run is not None, value is not None)
    if given.count(True) != 1:
        raise AuthorError(INVALID_NODE, f"{what} takes exactly one of agent=, run= and value=")
    if (prompt is not None) != given[0] or not (prompt is None or isinstance(prompt, str)):
        raise AuthorError(INVALID_NODE, f"{what}: agent= and a prompt= string go together")
    return KINDS[given.index(True)]


def _agents(what: str, given: object) -> tuple[AgentSpec, ...]:
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


def _args(what: str, run: object, args: Mapping[str, object]) -> dict[str, object]:
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
