"""Whether a person's answer fits the JSON Schema of its question, in the words of a person.

Only what pydantic writes into schemas is looked at, and what is unknown is let through: the
model itself has the last word when the answer is rendered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from smithers.operations.errors import ANSWER_INVALID, OperationError

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_SHOWN: Final = 5


def check_answer(answer: object, schema: Mapping[str, Any] | None) -> None:
    """Raise OperationError (ANSWER_INVALID) naming each field that doesn't fit."""
    if schema is None:
        return
    found = [
        f"{path or 'the answer'}: {problem}"
        for path, problem in _problems(answer, schema, schema, "")
    ]
    if found:
        raise OperationError(
            ANSWER_INVALID,
            f"the answer doesn't fit: {'; '.join(found[:_SHOWN])}",
            details={"problems": found, "schema": dict(schema)},
            hint="smithers human list --json shows the schema",
        )


def _problems(
    value: object, schema: Mapping[str, Any], root: Mapping[str, Any], path: str
) -> Iterator[tuple[str, str]]:
    schema = _resolved(schema, root)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        tried = [list(_problems(value, branch, root, path)) for branch in branches]
        if all(tried):
            yield from min(tried, key=len)
        return
    kind = schema.get("type")
    if isinstance(kind, str) and not _is(value, kind):
        yield path, f"it must be {_article(kind)}, not {_name(value)}"
        return
    if "const" in schema and value != schema["const"]:
        yield path, f"it must be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield path, f"it must be one of {', '.join(map(repr, schema['enum']))}"
    if isinstance(value, dict):
        yield from _fields(value, schema, root, path)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for position, item in enumerate(value):
            yield from _problems(item, schema["items"], root, f"{path}[{position}]")


def _fields(
    value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: str
) -> Iterator[tuple[str, str]]:
    known = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield _join(path, name), "it is missing"
    for name, item in value.items():
        if name in known:
            yield from _problems(item, known[name], root, _join(path, name))
        elif schema.get("additionalProperties") is False:
            yield _join(path, name), "there is no such field"
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from _problems(item, schema["additionalProperties"], root, _join(path, name))


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return schema
    definitions: dict[str, Any] = root.get("$defs", {})
    found: dict[str, Any] = definitions.get(reference.removeprefix("#/$defs/"), {})
    return found


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return kind not in _KINDS or isinstance(value, _KINDS[kind])


def _name(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    names = {name: kinds for name, kinds in _KINDS.items() if name != "boolean"}
    return next((_article(name) for name, kinds in names.items() if isinstance(value, kinds)), "")


def _article(kind: str) -> str:
    if kind == "null":
        return kind
    return f"an {kind}" if kind[0] in "aio" else f"a {kind}"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
