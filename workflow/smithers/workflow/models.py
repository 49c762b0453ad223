"""What waits give back, and how model values become stored fields and come back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

M = TypeVar("M", bound=BaseModel)


class Decision(BaseModel):
    """A person's answer to an approval."""

    model_config = ConfigDict(frozen=True)

    approved: bool
    note: str | None = None
    decided_by: str | None = None


class Event(BaseModel):
    """A signal whose payload has no model of its own."""

    model_config = ConfigDict(frozen=True)

    payload: JsonValue = None


class Fired(BaseModel):
    """A timer that went off."""

    model_config = ConfigDict(frozen=True)

    due_at: datetime


class NoInput(BaseModel):
    """The input of a workflow that takes none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def load(model: type[M], fields: Mapping[str, object]) -> M:
    """Make a model value of stored fields; raises pydantic's ValidationError.

    Fields are named as in the class, whatever aliases it has. A null that the class has no
    field for is a column that a later version of it has added to their common table.
    """
    known = model.model_fields
    fields = {name: value for name, value in fields.items() if value is not None or name in known}
    try:
        # JSON mode gives a strict model its dates and sets back.
        return model.model_validate_json(json.dumps(fields), by_alias=False, by_name=True)
    except ValidationError as error:
        # Half a surrogate pair is no JSON for pydantic, but a value that Python can hold.
        if error.errors(include_input=False)[0]["type"] != "json_invalid":
            raise
        return model.model_validate(fields, by_alias=False, by_name=True)


def dump(value: BaseModel) -> dict[str, object]:
    """Give a model value's fields as JSON-able data; computed fields are left out."""
    dumped: dict[str, object] = value.model_dump(mode="json", by_alias=False)
    declared = type(value).model_fields
    if len(dumped) == len(declared):
        return dumped
    return {name: each for name, each in dumped.items() if name in declared}


def problems(error: ValidationError) -> list[dict[str, str]]:
    """List what a value's fields got wrong, without the values themselves."""
    return [
        {
            "field": ".".join(str(part) for part in each["loc"]) or "(whole)",
            "message": each["msg"],
            "type": each["type"],
        }
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def in_words(found: list[dict[str, str]]) -> str:
    """Give problems as one phrase."""
    return "; ".join(f"{each['field']}: {each['message']}" for each in found)
