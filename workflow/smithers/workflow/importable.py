"""Names by which another process finds a function or a model: `module:qualname`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from smithers.workflow.errors import INVALID_MODEL, TASK_NOT_IMPORTABLE, AuthorError
from smithers.workflow.nodes import jsonable


class Target(NamedTuple):
    """A function by name, and what a partial has bound."""

    name: str
    partial: dict[str, object] | None


def function_target(what: str, function: Callable[..., object]) -> Target:
    """Name a function; raises AuthorError (TASK_NOT_IMPORTABLE, INVALID_VALUE)."""
    if not isinstance(function, partial):
        return Target(_name(what, function, TASK_NOT_IMPORTABLE), None)
    bound = jsonable(
        {"args": list(function.args), "kwargs": dict(function.keywords)}, f"partial of {what}"
    )
    return Target(_name(what, function.func, TASK_NOT_IMPORTABLE), bound)


def model_target(what: str, model: type) -> str:
    """Name a model; raises AuthorError (INVALID_MODEL)."""
    return _name(what, model, INVALID_MODEL)


def _name(what: str, found: object, code: str) -> str:
    module: object = getattr(found, "__module__", None)
    qualname: object = getattr(found, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(qualname, str):
        raise _refused(what, repr(found), "it has no name in a module", code)
    name = f"{module}:{qualname}"
    if "<" in qualname:
        inside = "a lambda" if "<lambda>" in qualname else "defined inside a function"
        raise _refused(what, name, f"it is {inside}", code)
    if module == "__main__":
        raise _refused(what, name, "its module was started as a program", code)
    if _find(module, qualname) is not found:
        raise _refused(what, name, "its module holds something else under this name", code)
    return name


def _find(module: str, qualname: str) -> object:
    found: object = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _refused(what: str, name: str, why: str, code: str) -> AuthorError:
    thing = "run=" if code == TASK_NOT_IMPORTABLE else "the model"
    return AuthorError(
        code,
        f"{thing} of {what} is {name}, which no other process can import: {why}",
        details={"name": name},
        hint=(
            "Use a function at the top of a module, and pass values through args=."
            if code == TASK_NOT_IMPORTABLE
            else "Define the model at the top of a module."
        ),
    )
