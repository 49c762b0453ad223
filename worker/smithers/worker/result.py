"""From what a body returned to the JSON text that is stored; runs in the executor."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from smithers.sql import codec
from smithers.workflow import attempts
from smithers.workflow.attempts import OUTPUT_NOT_SERIALISABLE, AttemptError, OutputTooLargeError


def encode_output(value: object, model: type[BaseModel], spill: Path) -> bytes:
    """As the core's, in the database's JSON; an output above 16 MiB is left in the file `spill`.

    Raises AttemptError: OUTPUT_INVALID, OUTPUT_NOT_SERIALISABLE, OUTPUT_TOO_LARGE.
    """
    try:
        return attempts.encode_output(value, model, _encode)
    except OutputTooLargeError as error:
        raise AttemptError(
            error.code, error.message, {**error.details, **_keep(error.text, spill)}
        ) from None


def _encode(fields: object) -> bytes:
    try:
        return codec.encode(fields).encode()
    except codec.BadValue as error:
        raise AttemptError(OUTPUT_NOT_SERIALISABLE, f"the output {error.message}") from error


def _keep(text: bytes, spill: Path) -> dict[str, object]:
    try:
        spill.parent.mkdir(parents=True, exist_ok=True)
        spill.write_bytes(text)
    except OSError as error:
        return {"not_kept": str(error)}
    return {"path": str(spill)}
