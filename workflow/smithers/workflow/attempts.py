"""What an attempt may leave: a valid output, or a typed error. For whoever runs bodies: a worker,
a test of a workflow.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from smithers.workflow.models import dump, in_words, load, problems
from smithers.workflow.retry import RetryPolicy, may_retry

TASK_RAISED: Final = "TASK_RAISED"
TASK_NOT_IMPORTABLE: Final = "TASK_NOT_IMPORTABLE"
OUTPUT_INVALID: Final = "OUTPUT_INVALID"
OUTPUT_NOT_SERIALISABLE: Final = "OUTPUT_NOT_SERIALISABLE"
OUTPUT_NOT_STORABLE: Final = "OUTPUT_NOT_STORABLE"
OUTPUT_TOO_LARGE: Final = "OUTPUT_TOO_LARGE"
OUT_OF_MEMORY: Final = "OUT_OF_MEMORY"
LOG_OVERFLOW: Final = "LOG_OVERFLOW"

FINAL_CODES: Final = frozenset(
    {
        TASK_NOT_IMPORTABLE,
        OUTPUT_NOT_SERIALISABLE,
        OUTPUT_NOT_STORABLE,
        OUTPUT_TOO_LARGE,
        LOG_OVERFLOW,
        "AGENT_UNSUPPORTED",
        "BUNDLE_CORRUPT",
        "BUNDLE_UNKNOWN",
    }
)
"""What another try would only repeat, at the same cost."""

MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024


class AttemptError(Exception):
    """An attempt fails with a stable code: `AttemptError("TASK_TIMEOUT")`.

    `message` is one sentence, `details` is JSON-able. The code decides whether there is a
    further try.
    """

    def __init__(
        self, code: str, message: str = "", details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message or code
        self.details: dict[str, Any] = dict(details or {})


class OutputTooLargeError(AttemptError):
    """An output above 16 MiB; `text` is what it would have been."""

    def __init__(self, text: bytes) -> None:
        super().__init__(
            OUTPUT_TOO_LARGE,
            f"the output takes {len(text)} bytes of JSON, at most {MAX_OUTPUT_BYTES} are stored",
            {"bytes": len(text), "limit": MAX_OUTPUT_BYTES},
        )
        self.text = text


def encode_output(
    value: object, model: type[BaseModel], encode: Callable[[object], bytes]
) -> bytes:
    """Give the JSON text of what a body returned, which must be an instance of the output model.

    What is stored must read back: an instance that was changed behind its model's back is
    refused here and not by the next render. `encode` raises AttemptError for what can't be JSON.
    Raises AttemptError: OUTPUT_INVALID, OUTPUT_NOT_SERIALISABLE, OUTPUT_TOO_LARGE.
    """
    if not isinstance(value, model):
        kind = "None" if value is None else f"a {type(value).__name__}"
        raise AttemptError(
            OUTPUT_INVALID,
            f"the body returned {kind}, not {model.__name__}",
            {"model": model.__name__, "returned": kind},
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what pydantic warns of is checked below
        fields = _fields(value, model)
    text = encode(fields)
    if len(text) > MAX_OUTPUT_BYTES:
        raise OutputTooLargeError(text)
    validated(fields, model)
    return text


def validated(fields: Mapping[str, object], model: type[BaseModel]) -> BaseModel:
    """Give the model of an agent's answer or of stored fields.

    Raises AttemptError (OUTPUT_INVALID).
    """
    try:
        return load(model, fields)
    except ValidationError as error:
        found = problems(error)[:50]
        raise AttemptError(
            OUTPUT_INVALID,
            f"the output is no valid {model.__name__}: {in_words(found)[:1000]}",
            {"model": model.__name__, "problems": found},
        ) from error


def next_try(descriptor: Mapping[str, object], failures: int, code: str) -> RetryPolicy | None:
    """Give the schedule of the try after so many failures; None when there is none."""
    retries = cast("int", descriptor.get("retries", 0))
    if code in FINAL_CODES or not may_retry(failures, retries):
        return None
    stored = cast("Mapping[str, object] | None", descriptor.get("retry"))
    return RetryPolicy.from_json(stored or RetryPolicy().to_json())


def _fields(instance: BaseModel, model: type[BaseModel]) -> dict[str, object]:
    try:
        # Dumped as JSON an infinity may silently become null, so look before.
        for path, number in _floats(instance.model_dump(mode="python"), ""):
            if not math.isfinite(number):
                where = path.lstrip(".")
                raise AttemptError(
                    OUTPUT_NOT_SERIALISABLE,
                    f"the output holds {number} at {where}: JSON has no such number",
                    {"field": where},
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
        for key, item in cast("Mapping[object, object]", value).items():
            yield from _floats(item, f"{path}.{key}")
    elif isinstance(value, list | tuple | set | frozenset):
        for position, item in enumerate(cast("list[object]", value)):
            yield from _floats(item, f"{path}.{position}")
