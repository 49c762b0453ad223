"""Values that go into a run: JSON, pydantic models, and JSON that holds such models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from smithers.operations.errors import OperationError
from smithers.sql import codec

JsonInput: TypeAlias = (
    "bool | int | float | str | BaseModel | Sequence[JsonInput] | Mapping[str, JsonInput] | None"
)
"""What a run takes: read-only collections will do, and a model counts as its JSON."""


def as_json(value: JsonInput, *, what: str, code: str, by_alias: bool) -> object:
    """Give a value as plain JSON; models by the aliases of their fields, or by their names.

    Raises OperationError (`code`), BadValue (NaN, an infinity).
    """
    try:
        plain: object = to_jsonable_python(value, by_alias=by_alias, fallback=_collection)
    except (PydanticSerializationError, TypeError, ValueError) as error:
        raise OperationError(
            code,
            f"{what} isn't JSON: {error}",
            hint="give a pydantic model, or what json.dumps takes",
        ) from error
    codec.encode(plain)
    return plain


def _collection(value: object) -> object:
    match value:
        case Mapping():
            return dict(value)
        case Sequence():
            return list(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON")
