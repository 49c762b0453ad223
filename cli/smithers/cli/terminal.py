"""What people see: text without control characters, tables, colours where they are wanted."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_WITHOUT_TERMINAL: Final = 200
_DUMB: Final = frozenset({"dumb", "unknown"})
_COLOURS: Final = {
    "done": "green",
    "finished": "green",
    "running": "cyan",
    "in-progress": "cyan",
    "waiting": "yellow",
    "paused": "yellow",
    "degraded": "yellow",
    "stuck": "red",
    "failed": "red",
    "cancelled": "magenta",
}


def safe(value: object) -> str:
    """Give a value as one line in which nothing moves the cursor or changes the terminal."""
    return "".join(_visible(char) for char in str(value))


def safe_lines(value: str) -> str:
    """As `safe`, but keeps line ends."""
    return "\n".join(safe(line.replace("\t", "    ")) for line in value.splitlines())


def _visible(char: str) -> str:
    # Cc controls, Cs half surrogates, Cf among them marks that reverse the reading direction.
    if char.isprintable() or char == " ":
        return char
    return char if unicodedata.category(char) == "Zs" else ascii(char)[1:-1]


def open_standard_streams() -> None:
    """Point those of the three standard streams that are closed at nothing.

    Otherwise the next file or connection that is opened would take the place of one.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
            os.set_inheritable(opened, True)  # noqa: FBT003
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody looks at a stream; False for a closed one."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def is_lively(stream: TextIO) -> bool:
    """Whether what was written to a stream can be drawn over: a terminal that isn't dumb."""
    return is_terminal(stream) and os.environ.get("TERM", "").lower() not in _DUMB


def has_colours(stream: TextIO) -> bool:
    """Whether a stream gets colours: NO_COLOR forbids, FORCE_COLOR asks, else a terminal does."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_lively(stream)


def console(stream: TextIO | None = None) -> Console:
    """A console for a stream, standard output if not given; a pipe that breaks raises.

    COLUMNS sets the width; see `has_colours` for colours. Without a terminal there are no other
    control characters, and a character that the encoding lacks is escaped.
    """
    target = sys.stdout if stream is None else stream
    if isinstance(target, TextIOWrapper) and target.errors == "strict":
        target.reconfigure(errors="backslashreplace")
    terminal = is_terminal(target)
    colours = has_colours(target)
    return _console_class()(
        file=target,
        width=_columns() or (None if terminal else _WIDTH_WITHOUT_TERMINAL),
        _environ={name: value for name, value in os.environ.items() if name != "COLUMNS"},
        force_terminal=terminal,
        force_interactive=is_lively(target),
        color_system=("auto" if is_lively(target) else "standard") if colours else None,
        no_color=not colours,
        highlight=False,
        markup=False,
        emoji=False,
    )


@cache
def _console_class() -> type[Console]:
    """A Console that leaves a broken pipe to the caller; rich's own ends the process with 1."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - called where the error is handled

    return Plain


def _columns() -> int | None:
    """The width that COLUMNS asks for; what isn't a positive number asks for nothing."""
    asked = os.environ.get("COLUMNS", "")
    return int(asked) or None if re.fullmatch("[0-9]{1,4}", asked) else None


def show(line: str = "", *, style: str | None = None) -> None:
    """Print one line of text that is safe already."""
    console().print(line, style=style, soft_wrap=True)


def say(line: str) -> None:
    """Print one line of text that is safe already to standard error, if somebody reads it."""
    with suppress(OSError, ValueError):
        console(sys.stderr).print(line, soft_wrap=True)


def show_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table of values; states get their colour."""
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        cells = [safe("" if cell is None else cell) for cell in row]
        table.add_row(*(Text(cell, style=colour(cell), overflow="fold") for cell in cells))
    console().print(table)


def colour(state: str) -> str:
    """The colour of a state or verdict; nothing for other words."""
    return _COLOURS.get(state, "yellow" if state.startswith("waiting-") else "")


def when(value: object) -> str:
    """Give a timestamp in local time, to the second."""
    if value is None:
        return ""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def ago(value: object, now: datetime | None = None) -> str:
    """Give how long ago a timestamp is, roughly."""
    if value is None:
        return ""
    moment = datetime.fromisoformat(str(value))
    return span((now or datetime.now(UTC)) - moment) + " ago"


def span(delta: Any) -> str:
    """Give a duration in its two largest units."""
    seconds = max(0.0, delta.total_seconds())
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
