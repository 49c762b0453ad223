"""What a live view knows of a run: its tree and its rows, read again only where something changed.

    progress.event(event) …, progress.claimed(attempts)     notes what is out of date
    progress.wanted()                                       what is to be read, if anything
    progress.update(document, now)                          takes what was read

Pure: no terminal, database or clock.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from smithers.operations.results import EventLine
from smithers.workflow.frame import Entry, FrameStructure, reconstruct
from smithers.workflow.keys import MARK, NodeKey
from smithers.workflow.snapshot import FrameRow
from smithers.workflow.states import AttemptState, NodeKind, NodeState, RunStatus

ENDED = frozenset({NodeState.FINISHED, NodeState.FAILED, NodeState.SKIPPED, NodeState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Row:
    """A node as the database has it; `attempt` is 0 before the first."""

    key: NodeKey
    kind: str
    state: NodeState | AttemptState
    attempt: int
    started_at: datetime | None = None
    ended_at: datetime | None = None
    due_at: datetime | None = None
    error: Mapping[str, Any] | None = None
    detail: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A node's place in the tree. `key` is None for a container, which has no row.

    `limit` is a Parallel's cap or a Loop's most passes.
    """

    kind: str
    key: NodeKey | None = None
    limit: int | None = None
    children: tuple[Place, ...] = ()


class Wanted(NamedTuple):
    """What is to be read: rows of `keys` (None: all), and the structures after a frame."""

    keys: list[NodeKey] | None
    after: int


@dataclass(slots=True)
class Progress:
    """A run as far as it was read; `lead` is how far the database's clock is ahead of ours."""

    run_id: str
    workflow: str
    status: RunStatus = RunStatus.RUNNING
    created_at: datetime | None = None
    ended_at: datetime | None = None
    lead: timedelta = timedelta()
    root: Place | None = None
    rows: dict[NodeKey, Row] = field(default_factory=dict[NodeKey, Row])
    _changed: set[NodeKey] = field(default_factory=set[NodeKey])
    _out_of_date: bool = True
    _frames: list[FrameRow] = field(default_factory=list[FrameRow])

    def event(self, event: EventLine) -> None:
        """Note which nodes an entry of the log is about."""
        self._out_of_date = True
        if event.node_id is not None:
            self._changed.add((event.node_id, event.iteration or 0))
        for name in ("mounted", "nodes"):
            self._changed.update((node, n) for node, n, _ in event.payload.get(name) or ())

    def claimed(self, attempts: Iterable[tuple[str, int, int]]) -> None:
        """Note attempts that run and that aren't known to."""
        for node_id, iteration, attempt in attempts:
            known = self.rows.get((node_id, iteration))
            running = known is not None and known.state is AttemptState.IN_PROGRESS
            if known is None or not running or known.attempt != attempt:
                self._changed.add((node_id, iteration))
                self._out_of_date = True

    def wanted(self) -> Wanted | None:
        """What must be read to be up to date: everything at first, None if nothing changed."""
        if not self._out_of_date:
            return None
        after = self._frames[-1].frame_no if self._frames else 0
        return Wanted(sorted(self._changed) if self.created_at else None, after)

    def update(self, document: Mapping[str, Any], now: datetime) -> None:
        """Take what was read, at a time of our clock."""
        self.status = RunStatus(document["status"])
        self.created_at = _time(document["created_at"])
        self.ended_at = _time(document["ended_at"])
        self.lead = datetime.fromisoformat(document["now"]) - now
        for row in map(_row, document["nodes"]):
            self.rows[row.key] = row
        if document["frames"]:
            self._take(document["frames"])
        self._changed.clear()
        self._out_of_date = False

    def _take(self, frames: Sequence[Mapping[str, Any]]) -> None:
        for frame in frames:
            if frame["base"] is None:
                self._frames.clear()
            self._frames.append(FrameRow(frame["frame_no"], frame["base"], frame["body"]))
        structure = reconstruct(self._frames)
        self.root = None if structure is None else _place(structure, structure.root)

    def done(self) -> tuple[int, int]:
        """How many nodes have ended, of how many; each pass of a loop counts, the loop doesn't."""
        counted = [row for row in self.rows.values() if row.kind != NodeKind.LOOP]
        return sum(row.state in ENDED for row in counted), len(counted)


def command_for(run_id: str, row: Row) -> str | None:
    """Give the command that ends a node's wait for a person or an event; None without one."""
    run, (node_id, iteration) = shlex.quote(run_id), row.key
    if row.state is NodeState.WAITING_EVENT:
        name = str((row.detail or {}).get("name", node_id))
        return f"smithers signal {run} {shlex.quote(name)}"
    if row.state is not NodeState.WAITING_APPROVAL:
        return None
    flags = f"--node {shlex.quote(node_id)}{f' --iteration {iteration}' if iteration else ''}"
    if row.kind == NodeKind.HUMAN:
        return f"smithers human answer {run} {flags} --data '{{}}'"
    return f"smithers approve {run} {flags}"


def _place(structure: FrameStructure, key: str) -> Place:
    entry: Entry = structure.nodes[key]
    children = tuple(
        _place(structure, each) for each in cast("list[str]", entry.get("children", []))
    )
    node = None if key.startswith(MARK) else (key, cast("int", entry["iteration"]))
    limit = cast("int | None", entry.get("cap") or entry.get("max"))
    return Place(str(entry["kind"]), node, limit, children)


def _row(read: Mapping[str, Any]) -> Row:
    state = str(read["state"])
    running = state == AttemptState.IN_PROGRESS
    return Row(
        key=(str(read["node_id"]), int(read["iteration"])),
        kind=str(read["kind"]),
        state=AttemptState.IN_PROGRESS if running else NodeState(state),
        attempt=int(read["attempt"] or 0),
        started_at=_time(read["started_at"]),
        ended_at=_time(read["ended_at"]),
        due_at=_time(read["due_at"]),
        error=read["error"],
        detail=read["detail"],
    )


def _time(value: object) -> datetime | None:
    return None if value is None else datetime.fromisoformat(str(value))
