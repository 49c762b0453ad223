"""The last JSON object in what an agent printed."""

from __future__ import annotations

import json
import re
from typing import Any, cast

_START = re.compile(r'\{(?=\s*["}])')
_BUDGET = 64 * 1024 * 1024
"""Characters that may be read in vain: text that only looks like objects must not cost hours."""
_DEEP = 4_000_000
_LAST = 256 * 1024
"""Characters that are looked at when there were too many in vain."""
_LOCATE = 64
"""Finding the line of an error counts all lines before it, this much faster than reading."""


def last_object(text: str) -> dict[str, Any] | None:
    """The last JSON object in `text`, whatever stands around it; None without one.

    An object inside another doesn't count.
    """
    decoder = json.JSONDecoder()
    found: dict[str, Any] | None = None
    budget = _BUDGET
    start = _START.search(text)
    while start is not None and budget > 0:
        end = start.end()
        try:
            value, end = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            budget -= error.pos - start.start() + error.pos // _LOCATE
        except RecursionError:
            budget -= _DEEP
        else:
            found = cast("dict[str, Any]", value)
        start = _START.search(text, end)
    if start is not None and len(text) > _LAST:
        return last_object(text[-_LAST:]) or found
    return found
