"""Run the body of one attempt in this process, from its stored descriptor, as a worker does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from smithers.testing.awaiting import awaited
from smithers.testing.errors import AGENT_FAILED, SCRIPT_MISSING, HarnessError
from smithers.testing.outcome import output_fields, raised
from smithers.testing.scripts import Scripts, answer_fields, play
from smithers.testing.stored import Json
from smithers.workflow.attempts import TASK_RAISED, AttemptError, validated
from smithers.workflow.context import event_fields
from smithers.workflow.errors import SmithersError
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import NodeKind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt that ran: a body with `args` (keywords, needs included), or an agent with a
    `prompt`. `at` is by the fake clock; `error` is None if it gave its output.
    """

    node_id: str
    iteration: int
    attempt: int
    at: datetime
    args: Mapping[str, Any]
    prompt: str | None = None
    error: SmithersError | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What an attempt asks for, unpacked from its descriptor."""

    key: NodeKey
    descriptor: Json
    args: tuple[object, ...]
    keywords: dict[str, object]

    @property
    def prompt(self) -> str | None:
        """What the agent is told; None for a body."""
        prompt: str | None = self.descriptor["prompt"]
        return prompt


def ask(key: NodeKey, descriptor: Json, needs: Mapping[str, object]) -> Asked:
    """Fill the parameters of an attempt; `needs` are stored values by parameter, None without.

    Raises AttemptError.
    """
    partial = descriptor.get("partial") or {}
    keywords = {**partial.get("kwargs", {}), **(descriptor.get("args") or {})}
    for need in descriptor.get("needs") or ():
        row = needs.get(need["param"])
        keywords[need["param"]] = None if row is None else _needed(need, row)
    return Asked(key, descriptor, tuple(partial.get("args", ())), keywords)


def run_attempt(asked: Asked, agents: Scripts, tasks: Scripts) -> Json:
    """Run an attempt; give its output's fields. Raises AttemptError when it fails.

    An AssertionError of a script, a HarnessError, and what ends a test come through.
    """
    model = cast("type[BaseModel]", _find(asked.descriptor["output"]["model"]))
    args, keywords = deepcopy((asked.args, asked.keywords))  # a body may change what it gets
    if asked.descriptor["kind"] == NodeKind.AGENT:
        value: object = _ask_agent(asked, model, agents, tasks)
    elif asked.key[0] in tasks:
        said = tasks.next(asked.key[0])
        value = play(said, TASK_RAISED, *args, **keywords)
    elif asked.key[0] in agents:
        raise _missing(asked.key[0], "it is no agent task", "Script its body with tasks={…}.")
    else:
        body = cast("Callable[..., object]", _find(asked.descriptor["run"]))
        value = _guarded(lambda: awaited(body(*args, **keywords)))
    return _guarded(lambda: output_fields(value, model))


def _ask_agent(asked: Asked, model: type[BaseModel], agents: Scripts, tasks: Scripts) -> BaseModel:
    node_id = asked.key[0]
    if node_id not in agents:
        others = ", ".join(agents.unused() + tasks.unused())
        raise _missing(
            node_id,
            f"it asks an agent{f'; never used: {others}' if others else ''}",
            f"Say what the agent answers: agents={{{node_id!r}: {model.__name__}(…)}}.",
        )
    answer = play(agents.next(node_id), AGENT_FAILED, asked.prompt)
    fields = answer_fields(node_id, answer)
    return _guarded(lambda: validated(fields, model))  # validators are user code


def _guarded(body: Callable[[], T]) -> T:
    """Run user code. A missing distribution comes through: a worker would give the attempt back
    for another one to run.
    """
    try:
        return body()
    except (AttemptError, ModuleNotFoundError):
        raise
    except (Exception, SystemExit) as error:
        raise raised(error, TASK_RAISED) from error


def _needed(need: Json, row: object) -> BaseModel:
    model = cast("type[BaseModel]", _find(need["model"]))
    fields = event_fields(model, row) if need["kind"] == NodeKind.EVENT else row
    try:
        return validated(cast("Mapping[str, object]", fields), model)
    except AttemptError as error:
        raise AttemptError(
            TASK_RAISED,
            f"the stored output of {need['node_id']} is no valid {model.__name__} any more",
            {"param": need["param"], "problems": error.message},
        ) from error


def _find(path: str) -> object:
    """Give the function or model that a descriptor names; the core has checked that it is there."""
    module, _, qualname = path.partition(":")
    found: object = sys.modules[module]
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _missing(node_id: str, why: str, hint: str) -> HarnessError:
    return HarnessError(
        SCRIPT_MISSING,
        f"task {node_id!r} has no script: {why}",
        details={"node_id": node_id},
        hint=hint,
    )
