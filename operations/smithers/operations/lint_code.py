"""Look at the code of a workflow: what its function calls, and what its bodies take."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_type_hints

from pydantic import BaseModel

from smithers.operations.lint_play import find
from smithers.sql.rows import Json

_IMPURE: Final = (
    "time.",
    "random.",
    "uuid.uuid",
    "secrets.",
    "os.urandom",
    "os.getenv",
    "os.environ",
    "os.getpid",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
)


def look_at_function(function: Callable[..., object], folder: Path) -> list[Json]:
    """Find calls of a workflow function whose answer differs from render to render."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return []
    file = _relative(inspect.getsourcefile(function), folder)
    names = getattr(function, "__globals__", {})
    found: dict[str, Json] = {}
    for node in ast.walk(tree):
        called = _called(node, names)
        if called is not None and called.startswith(_IMPURE):
            where = f"{file}:{first + getattr(node, 'lineno', 1) - 1}"
            found[where] = {
                "code": "IMPURE_RENDER",
                "level": "warning",
                "where": where,
                "message": f"the workflow function uses {called}, which differs between renders",
                "fix": "read it in a task, or take it from ctx.input",
            }
    return list(found.values())


def look_at_tasks(nodes: Mapping[str, Json], folder: Path) -> list[Json]:
    """Find arguments that a body doesn't take, and parameters that nobody fills."""
    findings: list[Json] = []
    for name, descriptor in nodes.items():
        if descriptor.get("run"):
            findings += _look_at_task(name, descriptor, folder)
    return findings


def _look_at_task(name: str, descriptor: Json, folder: Path) -> Iterator[Json]:
    body = find(str(descriptor["run"]))
    try:
        signature = inspect.signature(body)
    except (TypeError, ValueError):
        return
    bound = descriptor.get("partial") or {}
    needs = {str(need["param"]): need for need in descriptor.get("needs") or ()}
    given = {**bound.get("kwargs", {}), **(descriptor.get("args") or {}), **needs}
    parameters = signature.parameters
    file = _relative(inspect.getsourcefile(body), folder)
    where = f"{file}:{body.__code__.co_firstlineno}" if hasattr(body, "__code__") else file
    place = {"where": where, "node_id": name}
    free = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    for unknown in () if free else given.keys() - parameters.keys():
        yield _finding(
            "UNKNOWN_PARAMETER",
            f"{_short(descriptor)} takes no {unknown!r}",
            f"remove it from the task, or add the parameter to {_short(descriptor)}",
            place,
        )
    filled = set(list(parameters)[: len(bound.get("args", ()))]) | given.keys()
    for each in parameters.values():
        if each.name not in filled and _is_required(each):
            yield _finding(
                "MISSING_PARAMETER",
                f"nobody fills {each.name!r} of {_short(descriptor)}",
                "give it by args= or needs=",
                place,
            )
    yield from _mismatches(body, needs, descriptor, place)


def _mismatches(
    body: Callable[..., object], needs: Mapping[str, Json], descriptor: Json, place: Json
) -> Iterator[Json]:
    try:
        hints = get_type_hints(body)
    except Exception:  # noqa: BLE001  a hint may be anything
        return
    for param, need in needs.items():
        wanted = hints.get(param)
        given = find(str(need["model"]))
        if not isinstance(wanted, type) or not issubclass(wanted, BaseModel):
            continue
        if not issubclass(given, wanted):
            yield _finding(
                "PARAMETER_MISMATCH",
                f"{param!r} of {_short(descriptor)} is a {wanted.__name__}, "
                f"but {need['node_id']!r} gives a {given.__name__}",
                "need another node, or change the annotation",
                place,
            )


def _finding(code: str, message: str, fix: str, place: Json) -> Json:
    return {"code": code, "level": "error", "message": message, "fix": fix, **place}


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return parameter.default is inspect.Parameter.empty and parameter.kind not in variadic


def _short(descriptor: Json) -> str:
    return str(descriptor["run"]).partition(":")[2]


def _relative(file: str | None, folder: Path) -> str:
    return (file or "").removeprefix(f"{folder}/")


def _called(node: ast.AST, names: Mapping[str, Any]) -> str | None:
    """The full name of what a node calls, or of os.environ that it reads."""
    target = node.func if isinstance(node, ast.Call) else node
    if not isinstance(node, ast.Call) and not isinstance(node, ast.Attribute):
        return None
    parts: list[str] = []
    while isinstance(target, ast.Attribute):
        parts.insert(0, target.attr)
        target = target.value
    if not isinstance(target, ast.Name):
        return None
    root = names.get(target.id)
    if isinstance(root, ModuleType):
        full = ".".join([root.__name__, *parts])
    elif callable(root):
        owner = getattr(root, "__module__", None) or ""
        full = ".".join([owner, getattr(root, "__qualname__", target.id), *parts])
    else:
        return None
    return full if isinstance(node, ast.Call) or full.startswith("os.environ") else None
