"""Values as they come back from the database: what a test must not take for granted.

A JSON column keeps no order of keys and no tuples, sets or dates; a column of a moment keeps
no time zone. Strings are kept as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel

from smithers.testing.errors import VALUE_NOT_STORABLE, HarnessError
from smithers.workflow.attempts import OUTPUT_NOT_STORABLE, AttemptError
from smithers.workflow.models import dump

Json: TypeAlias = dict[str, Any]

_LONG_FLOAT: Final = 1e16


def stored_json(value: object, what: str) -> Any:
    """Give a value (a model, or JSON-able data) as a jsonb column gives it back.

    Raises HarnessError (VALUE_NOT_STORABLE), naming `what`.
    """
    plain = dump(value) if isinstance(value, BaseModel) else value
    try:
        return json_column(json.loads(json.dumps(plain, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise HarnessError(
            VALUE_NOT_STORABLE,
            f"{what} can't be stored: {error}",
            hint="Give a model, or data that JSON has words for.",
        ) from error


def stored_output(fields: Mapping[str, object], columns: Sequence[Json]) -> Json:
    """Give the fields of an output as the columns of its table give them back.

    Raises AttemptError (OUTPUT_NOT_STORABLE) for a moment that isn't one.
    """
    types = {str(column["name"]): str(column["type"]) for column in columns}
    return {
        name: _column(name, types[name], value) for name, value in fields.items() if name in types
    }


def json_column(value: object) -> object:
    """Give JSON data as jsonb keeps it: keys by length, then by bytes; no negative zero."""
    if isinstance(value, dict):
        body = cast("dict[str, object]", value)
        return {name: json_column(body[name]) for name in sorted(body, key=_key_order)}
    if isinstance(value, list):
        return [json_column(each) for each in cast("list[object]", value)]
    if isinstance(value, float):
        long = abs(value) >= _LONG_FLOAT
        return int(Decimal(repr(value))) if long else value + 0.0
    return value


def _column(name: str, kind: str, value: object) -> object:
    if kind != "datetime" or value is None:
        return json_column(value) if kind == "json" else value
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise AttemptError(
            OUTPUT_NOT_STORABLE, f"the output's {name} is {value!r}, which is no moment"
        ) from error
    return moment.astimezone(UTC).isoformat()


def _key_order(name: str) -> tuple[int, bytes]:
    text = name.encode("utf-8", "surrogatepass")
    return len(text), text
