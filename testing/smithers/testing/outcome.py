"""What an attempt leaves: a valid output as JSON, or a typed error and when it is tried again.

The rules are a worker's (`smithers.worker.result`, `smithers.worker.outcome`); a test compares
the two.
"""

from __future__ import annotations

import json
import traceback
from typing import cast

from pydantic import BaseModel

from smithers.testing.stored import Json
from smithers.workflow.attempts import (
    OUT_OF_MEMORY,
    OUTPUT_NOT_SERIALISABLE,
    AttemptError,
    encode_output,
    next_try,
)
from smithers.workflow.keys import NodeKey


def output_fields(value: object, model: type[BaseModel]) -> Json:
    """Give the JSON fields of what a body returned, which must be an instance of the model.

    Raises AttemptError: OUTPUT_INVALID, OUTPUT_NOT_SERIALISABLE, OUTPUT_TOO_LARGE.
    """
    return cast("Json", json.loads(encode_output(value, model, _encode)))


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
    policy = next_try(descriptor, failures, code)
    return None if policy is None else policy.ceiling(failures)


def _encode(fields: object) -> bytes:
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        raise AttemptError(
            OUTPUT_NOT_SERIALISABLE, f"the output can't be stored: {error}"
        ) from error
    return text.encode("utf-8", "surrogatepass")
