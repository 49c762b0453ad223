"""`@workflow`: what makes a function of Ctx a workflow."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast, overload

from pydantic import BaseModel, RootModel, ValidationError

from smithers.workflow.context import Ctx
from smithers.workflow.errors import (
    INPUT_INVALID,
    INVALID_MODEL,
    INVALID_NODE,
    AuthorError,
    InputError,
)
from smithers.workflow.keys import check_id
from smithers.workflow.models import NoInput, dump, in_words, load, problems
from smithers.workflow.nodes import Child, model_of

Input = TypeVar("Input", bound=BaseModel)

# A workflow is held without its input's type: what is called with is what it declares.
Function = Callable[[Ctx[Any]], Child]


@dataclass(frozen=True, eq=False)
class Workflow:
    """A named function from the facts of a run to the tree of its nodes."""

    name: str
    input: type[BaseModel]
    function: Function
    include: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # As a function would: tools ask a module's values where they are from.
        for name in ("__module__", "__qualname__", "__doc__"):
            object.__setattr__(self, name, getattr(self.function, name, None))

    def __call__(self, ctx: Ctx[Any]) -> Child:
        """Render once."""
        return self.function(ctx)

    def validate_input(self, raw: object) -> BaseModel:
        """Give a run's input as the model; raises InputError, which lists each field."""
        try:
            if isinstance(raw, BaseModel):
                return self.input.model_validate(raw)
            return self.input.model_validate_json(json.dumps({} if raw is None else raw))
        except ValidationError as error:
            raise self._refused(error) from error
        except (TypeError, ValueError) as error:
            raise InputError(
                INPUT_INVALID, f"the input of {self.name!r} isn't JSON: {error}"
            ) from error

    def admit(self, raw: object) -> dict[str, object]:
        """Give the input to store with a run: validated, defaults filled in, fields by name.

        Raises InputError.
        """
        value = self.validate_input(raw)
        try:
            return dump(value)
        except ValueError as error:
            raise InputError(
                INPUT_INVALID, f"the input of {self.name!r} can't be stored: {error}"
            ) from error

    def stored_input(self, fields: object) -> BaseModel:
        """Give the model of an input that `admit` stored; raises InputError."""
        if not isinstance(fields, dict):
            return self.validate_input(fields)
        try:
            return load(self.input, cast("dict[str, object]", fields))
        except ValidationError as error:
            raise self._refused(error) from error

    def _refused(self, error: ValidationError) -> InputError:
        found = problems(error)
        return InputError(
            INPUT_INVALID,
            f"the input doesn't fit {self.input.__name__}: {in_words(found)}",
            details={"fields": found, "model": self.input.__name__, "workflow": self.name},
        )


@overload
def workflow(
    *, input: type[Input], name: str | None = None, include: Iterable[str] = ()
) -> Callable[[Callable[[Ctx[Input]], Child]], Workflow]: ...
@overload
def workflow(
    *, name: str | None = None, include: Iterable[str] = ()
) -> Callable[[Callable[[Ctx[NoInput]], Child]], Workflow]: ...
def workflow(
    *,
    input: type[BaseModel] = NoInput,  # noqa: A002  the keyword that authors write
    name: str | None = None,
    include: Iterable[str] = (),
) -> Callable[[Callable[[Ctx[Any]], Child]], Workflow]:
    """Make a function a workflow.

    `input` is the model of a run's input. `name` is the function's unless given. `include`
    is a literal list of files that belong to the source, beside the modules it imports.
    Raises AuthorError.
    """
    model_of("@workflow(input=…)", input)
    if issubclass(input, RootModel):
        raise AuthorError(INVALID_MODEL, "a workflow's input has named fields: no RootModel")

    def decorate(function: Callable[[Ctx[Any]], Child]) -> Workflow:
        if inspect.iscoroutinefunction(function):
            raise AuthorError(INVALID_NODE, "a workflow is a plain function, not an async one")
        chosen = name or getattr(function, "__name__", "")
        return Workflow(check_id(chosen, "Workflow"), input, function, tuple(include))

    return decorate
