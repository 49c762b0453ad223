"""The last JSON object in what an agent printed."""

from __future__ import annotations

import json
from typing import Any, cast

_BUDGET = 64 * 1024 * 1024
"""Characters that may be read in vain: text that only looks like objects must not cost hours."""
_DEEP = 200_000


def last_object(text: str) -> dict[str, Any] | None:
    """The last JSON object in `text`, whatever stands around it; None without one.

    An object inside another doesn't count.
    """
    decoder = json.JSONDecoder()
    found: dict[str, Any] | None = None
    budget = _BUDGET
    start = text.find("{")
    while start >= 0 and budget > 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            budget -= error.pos - start + 1
            end = start + 1
        except RecursionError:
            budget -= _DEEP
            end = start + 1
        else:
            found = cast("dict[str, Any]", value)
        start = text.find("{", end)
    return found
