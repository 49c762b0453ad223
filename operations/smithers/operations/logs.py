"""What attempts printed: files in the home folder of the host that ran them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from smithers.operations.looking import unknown_node, unknown_run
from smithers.operations.results import Result
from smithers.process.attempt_files import AttemptKey, log_path
from smithers.process.identity import host_name
from smithers.sql import reads
from smithers.sql.calls import Connection
from smithers.sql.rows import Json
from smithers.workflow.states import ENDED_RUNS, RunStatus

_LOOK_SECONDS: Final = 0.3
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class AttemptLog(Result):
    """The log of one attempt. `lines` is None when its file isn't on this host; it is empty too
    when nothing was printed.
    """

    node_id: str
    iteration: int
    attempt: int
    state: str
    host: str | None
    path: str
    lines: list[str] | None


@dataclass(frozen=True, slots=True)
class LogLine(Result):
    """One line as it comes."""

    node_id: str
    iteration: int
    attempt: int
    line: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose logs: of a node, a pass and an attempt, or of all where there is None."""

    node_id: str | None = None
    iteration: int | None = None
    attempt: int | None = None


def read_logs(
    connection: Connection, home: Path, run_id: str, wanted: Wanted, *, tail: int | None = None
) -> list[AttemptLog]:
    """Give the logs of a run's attempts in the order of their claims, each its last `tail` lines.

    Raises UnknownRun, OperationError (NODE_UNKNOWN).
    """
    found: list[AttemptLog] = []
    for row in _attempts(connection, run_id, wanted):
        path = _path(home, run_id, row)
        lines = _lines(path, here=row["host"] in (None, host_name()))
        if lines is not None and tail is not None:
            lines = lines[max(0, len(lines) - tail) :]
        found.append(
            AttemptLog(
                node_id=row["node_id"],
                iteration=row["iteration"],
                attempt=row["attempt"],
                state=row["state"],
                host=row["host"],
                path=str(path),
                lines=lines,
            )
        )
    return found


def follow_logs(
    connection: Connection, home: Path, run_id: str, wanted: Wanted
) -> Iterator[LogLine]:
    """Give the lines of this host's attempts as they come, until the run has ended.

    Raises UnknownRun, OperationError (NODE_UNKNOWN).
    """
    readers: dict[Path, _Reader] = {}
    while True:
        watch = reads.read_watch(connection, run_id)
        ended = watch is not None and RunStatus(watch["status"]) in ENDED_RUNS
        for row in _attempts(connection, run_id, wanted):
            path = _path(home, run_id, row)
            reader = readers.setdefault(path, _Reader(path))
            over = ended or row["state"] != "in-progress"
            for line in reader.lines(to_the_end=over):
                yield LogLine(row["node_id"], row["iteration"], row["attempt"], line)
        if ended:
            return
        time.sleep(_LOOK_SECONDS)


@dataclass(slots=True)
class _Reader:
    """Reads a file that grows, line by line."""

    path: Path
    _at: int = 0
    _rest: bytes = field(default=b"")

    def lines(self, *, to_the_end: bool) -> Iterator[str]:
        """Give the lines that are whole by now, with `to_the_end` the last one as it is."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._at)
                while data := file.read(_CHUNK):
                    self._at += len(data)
                    *whole, self._rest = (self._rest + data).split(b"\n")
                    yield from (each.decode("utf-8", "replace") for each in whole)
        except FileNotFoundError:
            return
        if to_the_end and self._rest:
            rest, self._rest = self._rest, b""
            yield rest.decode("utf-8", "replace")


def _attempts(connection: Connection, run_id: str, wanted: Wanted) -> list[Json]:
    with reads.snapshot(connection):
        if not reads.run_exists(connection, run_id):
            raise unknown_run(run_id)
        rows = reads.read_attempts(
            connection, run_id, node_id=wanted.node_id, iteration=wanted.iteration
        )
        if not rows and wanted.node_id is not None:
            nodes = reads.read_details(connection, run_id)["nodes"]
            passes = [n for n in nodes if n["node_id"] == wanted.node_id]
            if not any(wanted.iteration in (None, n["iteration"]) for n in passes):
                raise unknown_node(run_id, wanted.node_id, wanted.iteration, nodes)
    return [row for row in rows if wanted.attempt in (None, row["attempt"])]


def _path(home: Path, run_id: str, row: Json) -> Path:
    return log_path(home, AttemptKey(run_id, row["node_id"], row["iteration"], row["attempt"]))


def _lines(path: Path, *, here: bool) -> list[str] | None:
    try:
        return path.read_bytes().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return [] if here else None
