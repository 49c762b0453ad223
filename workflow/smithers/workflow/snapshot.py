"""The rows of one run, as they were loaded, in frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Self, cast

from smithers.workflow.errors import SNAPSHOT_INVALID, SnapshotError
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import NodeKind, NodeState, RunStatus


class RunRow(NamedTuple):
    """The run itself."""

    run_id: str
    workflow: str
    input: Mapping[str, object]
    status: RunStatus = RunStatus.RUNNING
    wanted_seq: int = 0
    frame_no: int = 0
    pausing: bool = False
    cancelling: bool = False
    error: Mapping[str, object] | None = None
    max_concurrency: int | None = None


class NodeRow(NamedTuple):
    """One node, as far as a plan looks at it."""

    node_id: str
    iteration: int
    state: NodeState
    kind: NodeKind
    last_attempt: int = 0
    failures: int = 0
    abandoned: int = 0
    due_at: datetime | None = None
    descriptor_hash: str | None = None
    in_progress: bool = False
    error: Mapping[str, object] | None = None
    detail: Mapping[str, object] | None = None

    @property
    def key(self) -> NodeKey:
        """The node's key inside the run."""
        return (self.node_id, self.iteration)


class ApprovalRow(NamedTuple):
    """A request for a decision, and the decision."""

    decision: str | None = None
    note: str | None = None
    decided_by: str | None = None
    expired: bool = False


class HumanRow(NamedTuple):
    """A question to a person, and the answer."""

    status: str
    response: object = None


class SignalRow(NamedTuple):
    """A signal that no wait has taken."""

    seq: int
    name: str
    payload: object = None


class TimerRow(NamedTuple):
    """A timer; `fired` is what counts, not the clock."""

    due_at: datetime
    fired: bool = False


class FrameRow(NamedTuple):
    """A stored structure: full without a base, else the changes since the frame `base`."""

    frame_no: int
    base: int | None
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a render reads. The order of rows has no meaning."""

    now: datetime
    run: RunRow
    nodes: tuple[NodeRow, ...] = ()
    outputs: Mapping[NodeKey, Mapping[str, object]] = field(
        default_factory=dict[NodeKey, Mapping[str, object]]
    )
    approvals: Mapping[NodeKey, ApprovalRow] = field(default_factory=dict[NodeKey, ApprovalRow])
    humans: Mapping[NodeKey, HumanRow] = field(default_factory=dict[NodeKey, HumanRow])
    events: Mapping[NodeKey, object] = field(default_factory=dict[NodeKey, object])
    signals: tuple[SignalRow, ...] = ()
    timers: Mapping[NodeKey, TimerRow] = field(default_factory=dict[NodeKey, TimerRow])
    frames: tuple[FrameRow, ...] = ()

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> Self:
        """Read the document that `load_run` gives; raises SnapshotError."""
        try:
            return cls(
                now=_time(body["now"]),
                run=_run(_mapping(body["run"])),
                nodes=tuple(_node(row) for row in _rows(body, "nodes")),
                outputs=_outputs(body),
                approvals={_key(row): _approval(row) for row in _dicts(body, "approvals")},
                humans={
                    _key(row): HumanRow(str(row["status"]), row.get("response"))
                    for row in _dicts(body, "human")
                },
                events={_key(row): row.get("payload") for row in _dicts(body, "events")},
                signals=tuple(sorted(map(_signal, _dicts(body, "signals")), key=_seq)),
                timers={
                    _key(row): TimerRow(_time(row["due_at"]), bool(row.get("fired")))
                    for row in _dicts(body, "timers")
                },
                frames=tuple(sorted(map(_frame, _dicts(body, "frames")), key=_frame_no)),
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise SnapshotError(
                SNAPSHOT_INVALID,
                f"the rows of the run can't be read: {type(error).__name__} {error}",
            ) from error


def empty(workflow: str, run_input: Mapping[str, object], now: datetime) -> Snapshot:
    """Give the snapshot of a run that hasn't begun: what `smithers graph` renders."""
    return Snapshot(now, RunRow(run_id="graph", workflow=workflow, input=run_input))


def _run(row: Mapping[str, object]) -> RunRow:
    error = row.get("error")
    cap = row.get("max_concurrency") or _mapping(row.get("config") or {}).get("max_concurrency")
    return RunRow(
        run_id=str(row["run_id"]),
        workflow=str(row["workflow"]),
        input=_mapping(row.get("input") or {}),
        status=RunStatus(str(row.get("status", "running"))),
        wanted_seq=_int(row.get("wanted_seq", 0)),
        frame_no=_int(row.get("frame_no", 0)),
        pausing=row.get("pause_requested_at") is not None,
        cancelling=row.get("cancel_requested_at") is not None,
        error=None if error is None else _mapping(error),
        max_concurrency=None if cap is None else _int(cap),
    )


def _node(row: object) -> NodeRow:
    cells = list(cast("Iterable[object]", row))
    node_id, iteration, state, kind, last_attempt, failures, abandoned, due_at = cells[:8]
    descriptor_hash, in_progress, error = cells[8:11]
    detail = cells[11] if len(cells) > 11 else None
    return NodeRow(
        str(node_id),
        _int(iteration),
        NodeState(str(state)),
        NodeKind(str(kind)),
        _int(last_attempt or 0),
        _int(failures or 0),
        _int(abandoned or 0),
        None if due_at is None else _time(due_at),
        None if descriptor_hash is None else str(descriptor_hash),
        bool(in_progress),
        None if error is None else _mapping(error),
        None if detail is None else _mapping(detail),
    )


def _approval(row: Mapping[str, object]) -> ApprovalRow:
    return ApprovalRow(
        decision=_text(row.get("decision")),
        note=_text(row.get("note")),
        decided_by=_text(row.get("decided_by")),
        expired=bool(row.get("expired")),
    )


def _signal(row: Mapping[str, object]) -> SignalRow:
    return SignalRow(_int(row["seq"]), str(row["name"]), row.get("payload"))


def _frame(row: Mapping[str, object]) -> FrameRow:
    base = row.get("base_frame_no")
    return FrameRow(
        _int(row["frame_no"]), None if base is None else _int(base), _mapping(row["body"])
    )


def _seq(row: SignalRow) -> int:
    return row.seq


def _frame_no(row: FrameRow) -> int:
    return row.frame_no


def _outputs(body: Mapping[str, object]) -> dict[NodeKey, Mapping[str, object]]:
    """Read outputs by node id and iteration, or as the rows that the database gives."""
    found: dict[NodeKey, Mapping[str, object]] = {}
    if not isinstance(body.get("outputs"), Mapping):
        for row in _rows(body, "outputs"):
            node_id, iteration, fields = cast("list[object]", row)
            found[str(node_id), _int(iteration)] = _mapping(fields)
        return found
    for node_id, passes in _mapping(body["outputs"]).items():
        for number, fields in _mapping(passes).items():
            found[node_id, int(number)] = _mapping(fields)
    return found


def _rows(body: Mapping[str, object], name: str) -> list[object]:
    given = body.get(name) or ()
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{name} isn't a list")
    return list(cast("Iterable[object]", given))


def _dicts(body: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    return [_mapping(row) for row in _rows(body, name)]


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} isn't an object")
    return cast("Mapping[str, object]", value)


def _key(row: Mapping[str, object]) -> NodeKey:
    return (str(row["node_id"]), _int(row["iteration"]))


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} isn't a whole number")
    return value


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _time(value: object) -> datetime:
    when = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    if when.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone")
    return when
