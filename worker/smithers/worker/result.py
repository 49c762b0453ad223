"""From what a body returned to the JSON text that is stored, or the typed reason why not.

Runs in the executor: user code makes the value, and user code (validators, serializers) is
called on the way.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from smithers.sql import codec
from smithers.worker.outcome import (
    OUTPUT_INVALID,
    OUTPUT_NOT_SERIALISABLE,
    OUTPUT_TOO_LARGE,
    AttemptError,
)
from smithers.workflow.models import dump, in_words, load, problems

MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024


def encode_output(value: object, model: type[BaseModel], spill: Path) -> bytes:
    """The JSON text of what a body returned, which must be an instance of the output model.

    What is stored must read back: an instance that was changed behind its model's back is
    refused here and not by the next render. An output above 16 MiB is left in the file `spill`.
    Raises AttemptError: OUTPUT_INVALID, OUTPUT_NOT_SERIALISABLE, OUTPUT_TOO_LARGE.
    """
    if not isinstance(value, model):
        raise AttemptError(
            OUTPUT_INVALID,
            f"the body returned {_kind(value)}, not {model.__name__}",
            {"model": model.__name__, "returned": _kind(value)},
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what pydantic warns of is checked below
        fields = _fields(value, model)
    try:
        text = codec.encode(fields).encode()
    except codec.BadValue as error:
        raise AttemptError(OUTPUT_NOT_SERIALISABLE, f"the output {error.message}") from error
    if len(text) > MAX_OUTPUT_BYTES:
        raise _too_large(text, spill)
    try:
        load(model, fields)
    except ValidationError as error:
        raise _invalid(model, error) from error
    return text


def validated(answer: Mapping[str, object], model: type[BaseModel]) -> BaseModel:
    """The output that an agent's answer stands for. Raises AttemptError (OUTPUT_INVALID)."""
    try:
        return load(model, answer)
    except ValidationError as error:
        raise _invalid(model, error) from error


def _fields(instance: BaseModel, model: type[BaseModel]) -> dict[str, object]:
    try:
        # Dumped as JSON an infinity may silently become null, so look before.
        for path, number in _floats(instance.model_dump(mode="python"), ""):
            if not math.isfinite(number):
                raise AttemptError(
                    OUTPUT_NOT_SERIALISABLE,
                    f"the output holds {number} at {path.lstrip('.')}: JSON has no such number",
                    {"field": path.lstrip(".")},
                )
        dumped = dump(instance)
    except (ValueError, TypeError, RecursionError) as error:
        raise AttemptError(
            OUTPUT_NOT_SERIALISABLE,
            f"the output can't be written as JSON: {str(error)[:500]}",
        ) from error
    # A subclass may have more fields than the table.
    return {name: each for name, each in dumped.items() if name in model.model_fields}


def _floats(value: object, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _floats(item, f"{path}.{key}")
    elif isinstance(value, list | tuple | set | frozenset):
        for position, item in enumerate(value):
            yield from _floats(item, f"{path}.{position}")


def _invalid(model: type[BaseModel], error: ValidationError) -> AttemptError:
    found = problems(error)[:50]
    return AttemptError(
        OUTPUT_INVALID,
        f"the output is no valid {model.__name__}: {in_words(found)[:1000]}",
        {"model": model.__name__, "problems": found},
    )


def _too_large(text: bytes, spill: Path) -> AttemptError:
    details: dict[str, object] = {"bytes": len(text), "limit": MAX_OUTPUT_BYTES}
    try:
        spill.parent.mkdir(parents=True, exist_ok=True)
        spill.write_bytes(text)
        details["path"] = str(spill)
    except OSError as error:
        details["not_kept"] = str(error)
    return AttemptError(
        OUTPUT_TOO_LARGE,
        f"the output takes {len(text)} bytes of JSON, at most {MAX_OUTPUT_BYTES} are stored",
        details,
    )


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
