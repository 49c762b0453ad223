"""The shape of an output model: its name, and a typed field for each of its fields."""

from __future__ import annotations

import re
import types
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, Union, cast, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, RootModel
from pydantic.errors import PydanticInvalidForJsonSchema

from smithers.workflow.canonical import canonical, digest
from smithers.workflow.errors import INVALID_MODEL, AuthorError
from smithers.workflow.importable import model_target

NAME_LENGTH: Final = 40
SCALARS: Final[dict[object, str]] = {
    int: "int",
    float: "float",
    str: "str",
    bool: "bool",
    AwareDatetime: "datetime",
}
JSON_TYPES: Final = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool": "boolean",
    "datetime": "string",
}


class Field(NamedTuple):
    """One field; everything that isn't a plain scalar is stored as JSON."""

    name: str
    type: str
    nullable: bool


class Shape(NamedTuple):
    """What an output table is made of; equal fields have an equal hash."""

    model: str
    name: str
    hash: str
    fields: tuple[Field, ...]
    text: str
    """The canonical JSON of the part of a descriptor that tells of the output."""

    def to_json(self) -> dict[str, object]:
        """Give the shape as it is registered."""
        return {
            "name": self.name,
            "shape": self.hash,
            "fields": [field._asdict() for field in self.fields],
        }


@cache
def shape_of(model: type[BaseModel]) -> Shape:
    """Give the shape of a model; raises AuthorError (INVALID_MODEL)."""
    what = f"the output {model.__name__}"
    _refuse_unstorable(what, model)
    schema = schema_of(model)
    fields = _fields(model)
    target, name = model_target(what, model), snake(model.__name__)
    shape = digest(canonical(sorted(fields), what))
    body = {"model": target, "name": name, "shape": shape, "schema": schema}
    return Shape(target, name, shape, fields, canonical(body, what))


@cache
def schema_of(model: type[BaseModel]) -> dict[str, object]:
    """Give a model's JSON Schema; raises AuthorError (INVALID_MODEL)."""
    try:
        return model.model_json_schema(by_alias=False)
    except PydanticInvalidForJsonSchema as error:
        raise AuthorError(
            INVALID_MODEL, f"the model {model.__name__} has no JSON Schema: {error.message}"
        ) from error


def snake(name: str) -> str:
    """Give a class name as an identifier of at most 40 characters."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    plain = re.sub(r"[^a-z0-9_]", "_", words)
    plain = plain if re.match(r"[a-z_]", plain) else f"_{plain}"
    if plain == words and len(plain) <= NAME_LENGTH:
        return plain
    # What was cut or replaced counts: two names stay two tables.
    return f"{plain[: NAME_LENGTH - 9]}_{digest(name)[:8]}"


def _refuse_unstorable(what: str, model: type[BaseModel]) -> None:
    if issubclass(model, RootModel):
        raise AuthorError(INVALID_MODEL, f"{what} is a RootModel: give it named fields")
    if model.model_config.get("extra") == "allow":
        raise AuthorError(
            INVALID_MODEL, f"{what} has extra='allow': fields without a name have no column"
        )


def _fields(model: type[BaseModel]) -> tuple[Field, ...]:
    dumped = cast("dict[str, object]", _serialized(model).get("properties", {}))
    fields: list[Field] = []
    for name, info in model.model_fields.items():
        if info.exclude:
            continue
        kind, nullable = _type(info.annotation)
        # A serializer may give something else than the annotation says.
        if kind != "json" and JSON_TYPES[kind] not in _json_types(dumped.get(name)):
            kind = "json"
        fields.append(Field(name, kind, nullable))
    return tuple(fields)


def _serialized(model: type[BaseModel]) -> dict[str, object]:
    schema: dict[str, object] = model.model_json_schema(by_alias=False, mode="serialization")
    ref = schema.get("$ref")
    if isinstance(ref, str):  # a model that holds itself
        definitions = cast("dict[str, dict[str, object]]", schema.get("$defs", {}))
        return definitions.get(ref.rpartition("/")[2], {})
    return schema


def _json_types(schema: object) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    body = cast("dict[str, object]", schema)
    found = {body["type"]} if isinstance(body.get("type"), str) else set[object]()
    for option in cast("list[object]", body.get("anyOf", [])):
        found |= _json_types(option)
    return {str(each) for each in found}


def _type(annotation: object) -> tuple[str, bool]:
    """Give a field's stored type, and whether it may be null."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _type(cast("tuple[object, ...]", get_args(annotation))[0])
    if origin in (Union, types.UnionType):
        options = cast("tuple[object, ...]", get_args(annotation))
        others = [option for option in options if option is not types.NoneType]
        nullable = len(others) < len(options)
        return (_type(others[0])[0] if len(others) == 1 else "json"), nullable
    may_be_null = any(annotation is each for each in (types.NoneType, object, Any))
    try:
        return SCALARS.get(annotation, "json"), may_be_null
    except TypeError:  # not hashable
        return "json", may_be_null
