"""Descriptors: everything about a task that a worker needs, as one JSON document with a hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import BaseModel

from smithers.workflow.canonical import canonical, digest
from smithers.workflow.errors import AuthorError
from smithers.workflow.importable import function_target, model_target
from smithers.workflow.keys import NodeKey
from smithers.workflow.nodes import Ref
from smithers.workflow.shapes import Shape, schema_of, shape_of
from smithers.workflow.tasks import Task
from smithers.workflow.waits import Approval, HumanTask, Timer, Wait, WaitForEvent


class Descriptor(NamedTuple):
    """A descriptor's hash and canonical text; the shape of its output, if it has a table."""

    hash: str
    text: str
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class Memo:
    """Descriptors that were made before, by node id; a renderer keeps it over its frames."""

    known: dict[str, tuple[Ref[BaseModel], tuple[NodeKey, ...], Descriptor]] = field(
        default_factory=dict[str, tuple[Ref[BaseModel], tuple[NodeKey, ...], Descriptor]]
    )


def describe(node: Ref[BaseModel], needs: tuple[NodeKey, ...], memo: Memo) -> Descriptor:
    """Give a node's descriptor; `needs` are the keys that its needs stand for now.

    Raises AuthorError, naming the node; `details["place"]` is where it was written.
    """
    before = memo.known.get(node.id)
    if before is not None and before[1] == needs and before[0] == node:
        return before[2]
    try:
        made = _describe(node, needs)
    except AuthorError as error:
        error.details.setdefault("place", "{}:{}".format(*node.site))
        raise
    memo.known[node.id] = (node, needs, made)
    return made


def _describe(node: Ref[BaseModel], needs: tuple[NodeKey, ...]) -> Descriptor:
    what = f"{type(node).__name__} {node.id!r}"
    output = node.output
    body: dict[str, object] = {
        "kind": node.kind.value,
        "id": node.id,
        "label": node.label,
        "meta": node.meta,
        "continue_on_fail": node.continue_on_fail,
    }
    if isinstance(node, Task):
        shape = shape_of(output)
        body |= _task(what, node, needs)
        text = _with_output(body, shape.text, what)
        return Descriptor(digest(text), text, shape)
    if isinstance(node, Wait):
        body |= _wait(what, node)
    text = canonical(body, what)
    return Descriptor(digest(text), text, None)


def _with_output(body: Mapping[str, object], output: str, what: str) -> str:
    """Give the canonical text of a body with its `output`.

    That part is long and the same for every task of a model, so it comes as text.
    """
    before = canonical({name: body[name] for name in body if name < "output"}, what)
    after = canonical({name: body[name] for name in body if name > "output"}, what)
    return f'{before[:-1]},"output":{output},{after[1:]}'


def _task(what: str, task: Task[BaseModel], needs: tuple[NodeKey, ...]) -> dict[str, object]:
    policy = task.policy
    target = None if task.run is None else function_target(what, task.run)
    return {
        "run": target and target.name,
        "partial": target and target.partial,
        "args": task.args,
        "needs": [
            {
                "param": need.param,
                "node_id": key[0],
                "iteration": key[1],
                "model": model_target(f"needs of {what}", need.output),
                "kind": need.kind.value,
            }
            for need, key in zip(task.needs, needs, strict=True)
        ],
        "agents": [agent.to_json() for agent in task.agents] or None,
        "prompt": task.prompt,
        "value": task.value,
        "retries": policy.retries,
        "retry": policy.retry.to_json(),
        "timeout": policy.timeout,
        "heartbeat_timeout": policy.heartbeat_timeout,
        "queue": policy.queue,
        "priority": policy.priority,
        "isolate": policy.isolate,
    }


def _wait(what: str, wait: Wait[BaseModel]) -> Mapping[str, object]:
    body: dict[str, object] = {"timeout": wait.timeout}
    output = wait.output
    match wait:
        case Approval():
            body |= {"title": wait.title, "summary": wait.summary}
        case HumanTask():
            body |= {"prompt": wait.prompt, "schema": schema_of(output)}
        case WaitForEvent():
            body |= {"name": wait.name, "schema": schema_of(output)}
        case Timer():
            until = wait.until
            body |= {"seconds": wait.seconds, "until": until and until.isoformat()}
        case _:
            raise TypeError(f"{what} is of no known kind")
    return body
