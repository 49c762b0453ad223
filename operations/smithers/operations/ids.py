"""Run ids: made here so that they sort by time, or chosen by a person and checked."""

from __future__ import annotations

import secrets
import time
import unicodedata
from typing import Final

from smithers.operations.errors import RUN_ID_INVALID, OperationError
from smithers.sql.errors import UnknownRun

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u
_TIME_CHARACTERS: Final = 9  # 45 bits of milliseconds: until the year 3084
_CHANCE_CHARACTERS: Final = 5
MAX_BYTES: Final = 64


def new_run_id() -> str:
    """Give an id of 14 characters; later ones sort after earlier ones."""
    milliseconds = time.time_ns() // 1_000_000
    chance = secrets.randbits(5 * _CHANCE_CHARACTERS)
    return _digits(milliseconds, _TIME_CHARACTERS) + _digits(chance, _CHANCE_CHARACTERS)


def check_run_id(run_id: str) -> str:
    """Return an id that a person chose. Raises OperationError (RUN_ID_INVALID)."""
    problem = _problem(run_id)
    if problem is None:
        return run_id
    raise OperationError(
        RUN_ID_INVALID,
        f"{run_id!a} can't be the id of a run: {problem}",
        details={"run_id": ascii(run_id)},
        hint="use letters, digits, '-', '_' and '.'",
    )


def known_run_id(run_id: str) -> str:
    """Return an id that a run may have. Raises UnknownRun for what no run can have."""
    if _problem(run_id) is None:
        return run_id
    raise UnknownRun(
        "RUN_UNKNOWN", f"there is no run {run_id!a}", hint="smithers ps --all lists the runs"
    )


def _problem(run_id: str) -> str | None:
    try:
        size = len(run_id.encode())
    except UnicodeEncodeError:
        return "it isn't valid UTF-8"
    if not 1 <= size <= MAX_BYTES:
        return f"it has {size} bytes; 1 to {MAX_BYTES} are allowed"
    if "/" in run_id or "\\" in run_id or run_id in {".", ".."}:
        return "it is used as a file name, so it holds no slash"
    if run_id.startswith("-"):
        return "it begins like an option"
    if any(char.isspace() or unicodedata.category(char)[0] == "C" for char in run_id):
        return "it holds a space or a control character"
    return None


def _digits(number: int, width: int) -> str:
    return "".join(_DIGITS[number >> 5 * place & 31] for place in reversed(range(width)))
