"""Make up a valid instance of a model: small, but with one item in each list, so that what a
workflow makes of items is seen too; and true, so that loops end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

_DEPTH: Final = 8
_FORMATS: Final = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "email": "a@example.com",
    "uri": "https://example.com/",
    "path": "a",
}

Schema = Mapping[str, Any]


class Uninventable(Exception):
    """No valid instance could be made up."""


def invent(model: type[BaseModel]) -> BaseModel:
    """Make up an instance. Raises Uninventable."""
    schema = model.model_json_schema()
    try:
        return model.model_validate(_value(schema, schema, 0))
    except (ValidationError, RecursionError) as error:
        said = str(error).splitlines()[0]
        raise Uninventable(f"no {model.__name__} can be made up ({said})") from error


def _value(schema: Schema, root: Schema, depth: int) -> object:
    if depth > _DEPTH:
        return None
    if (reference := schema.get("$ref")) is not None:
        name = str(reference).removeprefix("#/$defs/")
        return _value(root["$defs"][name], root, depth + 1)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("enum", "examples"):
        if schema.get(name):
            return schema[name][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return _value(schema[name][0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Schema, root: Schema, depth: int) -> object:
    match schema.get("type"):
        case "object":
            fields: Schema = schema.get("properties", {})
            wanted = schema.get("required", ())
            return {name: _value(fields[name], root, depth + 1) for name in wanted}
        case "array":
            if "prefixItems" in schema:
                return [_value(each, root, depth + 1) for each in schema["prefixItems"]]
            items = schema.get("items", {})
            least = max(1, schema.get("minItems", 0))
            return [_value(items, root, depth + 1) for _ in range(least)]
        case "string":
            text = _FORMATS.get(str(schema.get("format")), "a")
            return text.ljust(schema.get("minLength", 0), "a")
        case "integer" | "number":
            return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "a"
