"""From what somebody wrote to a value with the right type, or an error that says what is right.

Every parser takes (setting, value, origin, base folder) and returns the value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Self, cast, get_args

from smithers.workflow.errors import SmithersError

LogLevel = Literal["debug", "info", "warning", "error"]


class SettingsError(SmithersError):
    """A setting that can't be used: `SETTING_INVALID`, `SETTING_UNKNOWN`, `SETTINGS_FILE_INVALID`.

    `details` has `setting`, `origin` and, without passwords, `value`.
    """

    @classmethod
    def invalid(
        cls, setting: str, origin: str, value: object, reason: str, *, hint: str | None = None
    ) -> Self:
        """The value of a known setting is refused for a reason."""
        shown = without_password(value) if isinstance(value, str) else value
        return cls(
            "SETTING_INVALID",
            f"{setting} = {shown!r} (from {origin}): {reason}",
            details={"setting": setting, "origin": origin, "value": str(shown)},
            hint=hint or f"correct or remove it: {origin}",
        )

    @classmethod
    def unknown(cls, setting: str, origin: str, close: str | None) -> Self:
        """There is no such setting."""
        return cls(
            "SETTING_UNKNOWN",
            f"there is no setting {setting} (from {origin})",
            details={"setting": setting, "origin": origin},
            hint=f"did you mean {close}?" if close else "remove it",
        )


def parse_seconds(low: float, high: float) -> Callable[[str, object, str, Path], float]:
    """A parser of durations between `low` and `high` seconds."""

    def parse(name: str, value: object, origin: str, _base: Path) -> float:
        number = _number(name, value, origin)
        if not low <= number <= high:
            raise SettingsError.invalid(
                name, origin, value, f"it must be {low:g} to {high:g} seconds"
            )
        return number

    return parse


def parse_count(low: int, high: int) -> Callable[[str, object, str, Path], int]:
    """A parser of whole numbers between `low` and `high`."""

    def parse(name: str, value: object, origin: str, _base: Path) -> int:
        number = _number(name, value, origin)
        if not number.is_integer() or not low <= number <= high:
            raise SettingsError.invalid(
                name, origin, value, f"it must be a whole number, {low} to {high}"
            )
        return int(number)

    return parse


def _number(name: str, value: object, origin: str) -> float:
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise SettingsError.invalid(name, origin, value, "it must be a number")


def parse_log_level(name: str, value: object, origin: str, _base: Path) -> LogLevel:
    """One of the level names, in any case."""
    level = str(value).lower()
    if level not in get_args(LogLevel):
        raise SettingsError.invalid(
            name, origin, value, f"it must be one of {', '.join(get_args(LogLevel))}"
        )
    return cast("LogLevel", level)


def parse_flag(name: str, value: object, origin: str, _base: Path) -> bool:
    """Yes or no, in the usual words."""
    word = str(value).lower()
    if word not in _WORDS:
        raise SettingsError.invalid(name, origin, value, "it must be true or false")
    return _WORDS[word]


_WORDS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def parse_path(name: str, value: object, origin: str, base: Path) -> Path:
    """An absolute path; a relative one is taken from `base`, `~` is one's home."""
    if not isinstance(value, (str, Path)):
        raise SettingsError.invalid(name, origin, value, "it must be a path")
    return (base / Path(value).expanduser()).absolute()


def parse_database_url(name: str, value: object, origin: str, _base: Path) -> str:
    """A URL or a libpq key=value string. Whether a server answers is found out later."""
    if isinstance(value, str) and re.match(r"postgres(ql)?://|\s*[a-z_]+\s*=", value):
        return value
    raise SettingsError.invalid(
        name,
        origin,
        value,
        "it must be like postgresql://user:password@host:5432/name",
    )


def without_password(text: str) -> str:
    """The same text with the password of a URL or key=value string starred out."""
    text = re.sub(r"(://[^:/@?]*):\S*@", r"\1:***@", text)
    return re.sub(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)", r"\1***", text)
