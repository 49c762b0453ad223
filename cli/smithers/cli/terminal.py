"""What people see: text without control characters, tables, colours where they are wanted."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_WITHOUT_TERMINAL: Final = 200
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


def console(stream: TextIO | None = None) -> Console:
    """A console for a stream: colours only on a terminal and without NO_COLOR."""
    from rich.console import Console

    target = sys.stdout if stream is None else stream
    width = None if target.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(file=target, width=width, highlight=False, markup=False, emoji=False)


def show(line: str = "", *, style: str | None = None) -> None:
    """Print one line of text that is safe already."""
    console().print(line, style=style, soft_wrap=True)


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
