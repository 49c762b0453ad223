"""What an attempt leaves: a valid output as JSON, or a typed error and when it is tried again.

The rules are a worker's (`smithers.worker.result`, `smithers.worker.outcome`); a test compares
the two.
"""

from __future__ import annotations

import json
import math
import traceback
import warnings
from collections.abc import Iterator, Mapping
from typing import Final, cast

from pydantic import BaseModel, ValidationError

from smithers.testing.errors import (
    OUT_OF_MEMORY,
    OUTPUT_INVALID,
    OUTPUT_NOT_SERIALISABLE,
    OUTPUT_TOO_LARGE,
    AttemptError,
)
from smithers.testing.stored import Json
from smithers.workflow.keys import NodeKey
from smithers.workflow.models import dump, in_words, load, problems
from smithers.workflow.retry import RetryPolicy, may_retry

FINAL_CODES: Final = frozenset(
    {
        "TASK_NOT_IMPORTABLE",
        "OUTPUT_NOT_SERIALISABLE",
        "OUTPUT_NOT_STORABLE",
        "OUTPUT_TOO_LARGE",
        "LOG_OVERFLOW",
        "AGENT_UNSUPPORTED",
        "BUNDLE_CORRUPT",
        "BUNDLE_UNKNOWN",
    }
)
"""What another try would only repeat, at the same cost."""

MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024


def output_fields(value: object, model: type[BaseModel]) -> Json:
    """Give the JSON fields of what a body returned, which must be an instance of the model.

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
        fields = _dumped(value, model)
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        raise AttemptError(
            OUTPUT_NOT_SERIALISABLE, f"the output can't be stored: {error}"
        ) from error
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_OUTPUT_BYTES:
        raise AttemptError(
            OUTPUT_TOO_LARGE,
            f"the output takes {size} bytes of JSON, at most {MAX_OUTPUT_BYTES} are stored",
            {"bytes": size, "limit": MAX_OUTPUT_BYTES},
        )
    validated(fields, model)
    return cast("Json", json.loads(text))


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


def raised(error: BaseException, code: str) -> AttemptError:
    """Give the error of an attempt whose code raised; `code` is for what has none of its own."""
    if isinstance(error, AttemptError):
        return error
    if isinstance(error, MemoryError):
        return AttemptError(OUT_OF_MEMORY, "the body ran out of memory (MemoryError)")
    last = traceback.format_exception_only(error)[-1].strip()
    made = AttemptError(code, last, {"traceback": "".join(traceback.format_exception(error))})
    made.__cause__ = error
    return made


def stored_error(error: AttemptError, key: NodeKey) -> Json:
    """Give an error as the rows hold it."""
    details = {"node_id": key[0], "iteration": key[1], **error.details}
    return {"code": error.code, "message": error.message, "details": details}


def retry_delay(descriptor: Json, failures: int, code: str) -> float | None:
    """Give the seconds until the next try after so many failures; None when there is none.

    The schedule's jitter counts as its longest delay, so that a test knows the moment.
    """
    if code in FINAL_CODES or not may_retry(failures, int(descriptor.get("retries", 0))):
        return None
    stored: Mapping[str, object] = descriptor.get("retry") or RetryPolicy().to_json()
    return RetryPolicy.from_json(stored).ceiling(failures)


def _dumped(value: BaseModel, model: type[BaseModel]) -> dict[str, object]:
    try:
        # Dumped as JSON an infinity may silently become null, so look before.
        for path, number in _floats(value.model_dump(mode="python"), ""):
            if not math.isfinite(number):
                where = path.lstrip(".")
                raise AttemptError(
                    OUTPUT_NOT_SERIALISABLE,
                    f"the output holds {number} at {where}: JSON has no such number",
                    {"field": where},
                )
        dumped = dump(value)
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
