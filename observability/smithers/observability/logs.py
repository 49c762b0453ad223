"""Log lines are events with fields: one JSON object a line.

    log = Log().bind(kind="worker", pid=42)
    log.info("started", owner=7)

Ours and not a library's: the usual ones (structlog) take longer to import than the rest of a
process that starts.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum
from typing import TextIO

Line = Mapping[str, object]


class Level(IntEnum):
    """How much a line matters."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


class Sink:
    """Where the lines of this process go; those below `level` go nowhere."""

    def __init__(self) -> None:
        self.level = Level.INFO
        self.stream: TextIO | None = None

    def __call__(self, line: Line) -> None:
        """Write a line: in one write, so that those of several threads don't mix."""
        text = json.dumps(line, default=str, ensure_ascii=False)
        stream = sys.stderr if self.stream is None else self.stream
        stream.write(text + "\n")
        stream.flush()


SINK = Sink()
"""It belongs to the process, like its standard error."""


@dataclass(frozen=True, slots=True)
class Log:
    """Says events, each with the fields that were bound and its own."""

    fields: Line = field(default_factory=dict[str, object])
    sink: Callable[[Line], None] = SINK

    def bind(self, **fields: object) -> Log:
        """The same log with more fields in every line."""
        return replace(self, fields={**self.fields, **fields})

    def debug(self, event: str, **fields: object) -> None:
        """A detail, for whoever looks for a fault."""
        self._say(Level.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """What happens in a healthy process."""
        self._say(Level.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """What an operator may want to look at."""
        self._say(Level.WARNING, event, fields)

    def error(self, event: str, *, error: BaseException | None = None, **fields: object) -> None:
        """What an operator must look at; with the traceback of an `error`."""
        if error is not None:
            fields["traceback"] = "".join(traceback.format_exception(error))
        self._say(Level.ERROR, event, fields)

    def _say(self, level: Level, event: str, fields: Line) -> None:
        if level >= SINK.level:
            head = {"event": event, "level": level.name.lower()}
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self.sink({**head, "timestamp": at.replace("+00:00", "Z"), **self.fields, **fields})


def configure_logs(level: str, *, stream: TextIO | None = None) -> None:
    """Send the events of this process from `level` on to `stream` (standard error)."""
    SINK.level = Level[level.upper()]
    SINK.stream = stream
