"""The last JSON object in what an agent printed."""

from __future__ import annotations

import json
from typing import Any, cast

_TRIES = 10_000
"""Opening braces that are looked at, from the end."""


def last_object(text: str) -> dict[str, Any] | None:
    """The last JSON object in `text`, whatever stands around it; None without one.

    An object inside another doesn't count: the search goes backward over opening braces, and
    while a brace further left opens an object that reaches at least as far, that is the one.
    """
    decoder = json.JSONDecoder()
    best: dict[str, Any] | None = None
    reach = -1
    start = text.rfind("{")
    for _ in range(_TRIES):
        if start < 0:
            break
        try:
            found, stop = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            stop, found = -1, None
        if isinstance(found, dict) and stop >= reach:
            best, reach = cast("dict[str, Any]", found), stop
        elif best is not None and isinstance(found, dict):
            break
        start = text.rfind("{", 0, start)
    return best
