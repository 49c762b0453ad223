"""One text for one JSON value, and its hash."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import cast

from smithers.workflow.errors import INVALID_VALUE, AuthorError

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: object, what: str) -> str:
    """Give the canonical text: sorted keys, no spaces, ASCII.

    Raises AuthorError (INVALID_VALUE) for NaN, infinities, and what isn't JSON.
    """
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise AuthorError(INVALID_VALUE, f"{what} can't be stored as JSON: {error}") from error


def as_object(value: object) -> dict[str, object] | None:
    """Give a JSON object as such; None for anything else."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def digest(text: str) -> str:
    """Give the SHA-256 of a text, in hex."""
    return sha256(text.encode()).hexdigest()
