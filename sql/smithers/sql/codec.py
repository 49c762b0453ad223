"""Values on their way into and out of the database: the one edge.

Whatever Python can put into a str must survive, and jsonb can't hold three things: NUL, lone
surrogates, and (by our own escape) U+FFFF. Each becomes U+FFFF followed by four hex digits.
Numbers that JSON has no word for are refused before any write. A float from 1e16 on that lies
inside a jsonb value comes back as an int that converts to the same float; float fields don't.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from smithers.workflow.errors import SmithersError

if TYPE_CHECKING:
    import psycopg

_ESCAPE: Final = "\uffff"
_UNSAFE: Final = re.compile("[\x00\ud800-\udfff\uffff]")
_ESCAPED: Final = re.compile("\uffff([0-9a-f]{4})")
_ESCAPE_BYTES: Final = _ESCAPE.encode()


class BadValue(SmithersError):
    """A value that can't be stored as it is: NaN, an infinity, a cycle, or no JSON at all."""

    def __init__(self, reason: str) -> None:
        super().__init__("VALUE_NOT_STORABLE", f"the value can't be stored: {reason}")


def encode(value: object) -> str:
    """Give the JSON text of a value, safe for jsonb and for `text` after `->>`.

    Raises BadValue for NaN, infinities, integers beyond 4,300 digits, cycles, and other types.
    """
    try:
        text = _dumps(value)
        # json.dumps writes NUL as \u0000 and leaves the other two as they are.
        if "\\u0000" in text or _UNSAFE.search(text):
            text = _dumps(_map_strings(value, _escape))
    except (ValueError, TypeError, RecursionError) as error:
        raise BadValue(str(error)) from error
    return text


def decode(value: object) -> Any:
    """Undo the escape in every string of a value that was parsed from the database."""
    return _map_strings(value, _unescape)


def loads(data: str | bytes) -> Any:
    """Parse JSON from the database and undo the escape where there is one."""
    value = json.loads(data)
    escaped = _ESCAPE_BYTES in data if isinstance(data, bytes | bytearray) else _ESCAPE in data
    return decode(value) if escaped else value


def install(connection: psycopg.Connection[Any]) -> None:
    """Make a connection parse every json and jsonb value with `loads`."""
    # Executors encode values and never connect: they start a quarter faster without it.
    from psycopg.types.json import set_json_loads

    set_json_loads(loads, connection)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _escape(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if _ESCAPE in text else text


def _map_strings(value: object, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {
            change(key) if isinstance(key, str) else key: _map_strings(item, change)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_map_strings(item, change) for item in value]
    return value
