"""The rows of one run in memory: loaded and committed as the stored functions do.

What the functions promise about rows is asserted here, so that a plan that breaks a promise
ends the test.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from smithers.testing.stored import Json, stored_json, stored_output
from smithers.workflow.definition import Workflow
from smithers.workflow.descriptor import Memo
from smithers.workflow.document import FrameDoc
from smithers.workflow.frame import FrameStructure
from smithers.workflow.keys import NodeKey
from smithers.workflow.settle import settle
from smithers.workflow.snapshot import (
    ApprovalRow,
    HumanRow,
    NodeRow,
    RunRow,
    SignalRow,
    Snapshot,
    TimerRow,
)
from smithers.workflow.states import NODE_MOVES, RUN_MOVES, NodeKind, NodeState, RunStatus

START: Final = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class Row:
    """One row of `nodes`, with its lease."""

    kind: str
    state: NodeState = NodeState.PENDING
    last_attempt: int = 0
    failures: int = 0
    abandoned: int = 0
    due_at: datetime | None = None
    descriptor_hash: str | None = None
    in_progress: bool = False
    error: Json | None = None
    detail: Json | None = None
    upstream: list[Any] = field(default_factory=list[Any])


class RunRows:
    """One run: what `load_run` gives and what `commit_frame` does.

    The last structure and descriptors are remembered from frame to frame, as a renderer does.
    """

    def __init__(
        self,
        workflow: Workflow,
        raw_input: object = None,
        *,
        run_id: str = "r1",
        now: datetime = START,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self.workflow = workflow
        self.now: datetime = now
        self.memo = Memo()
        self.structure: FrameStructure | None = None
        self.run: Json = {
            "run_id": run_id,
            "workflow": workflow.name,
            "input": stored_json(workflow.admit(raw_input), f"the input of {workflow.name!r}"),
            "config": dict(config or {}),
            "status": "running",
            "wanted_seq": 1,
            "rendered_seq": 0,
            "frame_no": 0,
            "pause_requested_at": None,
            "cancel_requested_at": None,
            "error": None,
        }
        self.nodes: dict[NodeKey, Row] = {}
        self.outputs: dict[NodeKey, Json] = {}
        self.approvals: dict[NodeKey, Json] = {}
        self.humans: dict[NodeKey, Json] = {}
        self.timers: dict[NodeKey, Json] = {}
        self.signals: list[Json] = []
        self.descriptors: dict[str, Json] = {}
        self.shapes: dict[tuple[str, str], list[Json]] = {}
        self.last: Json = {}

    @property
    def status(self) -> RunStatus:
        """The stored status."""
        return RunStatus(self.run["status"])

    def snapshot(self) -> Snapshot:
        """Load: what `load_run` gives. Stored values are already as JSON left them."""
        events = {
            (taken[0], taken[1]): signal["payload"]
            for signal in self.signals
            if (taken := signal["taken"])
        }
        return Snapshot(
            now=self.now,
            run=_run(self.run),
            nodes=tuple(_node(key, row) for key, row in self.nodes.items()),
            outputs=dict(self.outputs),
            approvals={key: _approval(row) for key, row in self.approvals.items()},
            humans={
                key: HumanRow(row["status"], row.get("response"))
                for key, row in self.humans.items()
            },
            events=events,
            signals=tuple(
                SignalRow(each["seq"], each["name"], each["payload"])
                for each in self.signals
                if not each["taken"]
            ),
            timers={
                key: TimerRow(datetime.fromisoformat(row["due_at"]), row["fired"])
                for key, row in self.timers.items()
            },
        )

    def settle(self) -> FrameDoc:
        """Render without committing. Raises what the core's `settle` raises."""
        return settle(self.workflow, self.snapshot(), previous=self.structure, memo=self.memo)

    def frame(self) -> Json:
        """Render and commit one frame; give its document. Raises as `settle`."""
        doc = self.settle()
        body: Json = json.loads(json.dumps(doc.to_json()))
        self.commit(body)
        self.structure = doc.structure or self.structure
        return body

    def commit(self, doc: Json) -> None:
        """Do what `commit_frame` does."""
        self.last = doc
        self.run["frame_no"] += 1
        self.run["rendered_seq"] = doc["wanted_seq"]
        for each in doc["descriptors"]:
            assert each["hash"] not in self.descriptors
            self.descriptors[each["hash"]] = stored_json(each["body"], "a descriptor")
        for each in doc["outputs"]:
            self.shapes[each["name"], each["shape"]] = each["fields"]
        self._mount(doc["mount"])
        for move in doc["moves"]:
            self._move(move)
        self._open(doc)
        for each in doc["statics"]:
            self.nodes[key_of(each)].last_attempt += 1
            self.move(key_of(each), NodeState.PENDING, NodeState.FINISHED)
            self.keep_output(key_of(each), each["output"])
        for each in doc["ready"]:
            self._make_ready(each)
        old, new = self.status, RunStatus(doc["status"])
        assert old is new or (old, new) in RUN_MOVES, (old, new)
        self.run["status"] = new.value
        finished = new is RunStatus.FINISHED
        self.run["error"] = None if finished else doc["error"] or self.run["error"]

    def move(self, key: NodeKey, old: NodeState, new: NodeState) -> None:
        """Move a node by compare-and-set, along a legal move."""
        row = self.nodes[key]
        assert row.state is old, (key, row.state, old, new)
        assert (old, new) in NODE_MOVES, (key, old, new)
        row.state = new

    def keep_output(self, key: NodeKey, output: Mapping[str, object]) -> None:
        """Store an output; a key has one. Raises AttemptError (OUTPUT_NOT_STORABLE)."""
        assert key not in self.outputs, f"{key} finished twice"
        wanted = self.descriptor(key)["output"]
        self.outputs[key] = stored_output(output, self.shapes[wanted["name"], wanted["shape"]])

    def descriptor(self, key: NodeKey) -> Json:
        """Give a node's stored descriptor."""
        row_hash = self.nodes[key].descriptor_hash
        assert row_hash is not None, key
        return self.descriptors[row_hash]

    def _mount(self, mounts: list[Json]) -> None:
        for each in mounts:
            row = self.nodes.setdefault(key_of(each), Row(each["kind"]))
            assert row.state not in ("finished", "skipped", "ready"), (key_of(each), row)
            if each["descriptor_hash"] is not None:
                assert each["descriptor_hash"] in self.descriptors
            row.descriptor_hash = each["descriptor_hash"]
            row.upstream = each["upstream"]

    def _move(self, move: Json) -> None:
        key = key_of(move)
        row = self.nodes[key]
        assert not (move["from"] == "ready" and row.in_progress)
        self.move(key, NodeState(move["from"]), NodeState(move["to"]))
        row.error = move["error"]
        row.detail = move["detail"] or row.detail
        due_in = move["due_in"]
        row.due_at = None if due_in is None else self.now + timedelta(seconds=due_in)
        if move["to"] == "cancelled":
            self._supersede(key)

    def _make_ready(self, ready: Json) -> None:
        key = key_of(ready)
        self.move(key, NodeState.PENDING, NodeState.READY)
        row = self.nodes[key]
        row.due_at = None
        assert row.descriptor_hash == ready["descriptor_hash"]
        assert ready["descriptor_hash"] in self.descriptors
        assert ready["alone"] == (row.abandoned > 0)

    def _supersede(self, key: NodeKey) -> None:
        for requests in (self.approvals, self.humans, self.timers):
            requests.pop(key, None)

    def _open(self, doc: Json) -> None:
        for each in doc["approvals"]:
            assert self.nodes[key_of(each)].state == "waiting-approval"
            extra = {"decision": None, "due_at": self._due(each["timeout"])}
            self.approvals.setdefault(key_of(each), {**each, **extra})
        for each in doc["human"]:
            assert self.nodes[key_of(each)].state == "waiting-approval"
            extra = {"status": "pending", "due_at": self._due(each["timeout"])}
            self.humans.setdefault(key_of(each), {**each, **extra})
        for each in doc["timers"]:
            assert self.nodes[key_of(each)].state == "waiting-timer"
            due_at = each["until"] or self._due(each["seconds"])
            self.timers.setdefault(key_of(each), {**each, "due_at": due_at, "fired": False})
        for each in doc["consume"]:
            (signal,) = [s for s in self.signals if s["seq"] == each["signal_seq"]]
            assert signal["taken"] is None
            assert signal["name"] == each["name"]
            assert self.nodes[key_of(each)].state == "finished"
            signal["taken"] = list(key_of(each))

    def _due(self, seconds: float | None) -> str | None:
        return None if seconds is None else (self.now + timedelta(seconds=seconds)).isoformat()


def key_of(body: Json) -> NodeKey:
    """Give the key that a part of a document names."""
    return (body["node_id"], body["iteration"])


def _run(run: Json) -> RunRow:
    return RunRow(
        run_id=run["run_id"],
        workflow=run["workflow"],
        input=run["input"],
        status=RunStatus(run["status"]),
        wanted_seq=run["wanted_seq"],
        frame_no=run["frame_no"],
        pausing=run["pause_requested_at"] is not None,
        cancelling=run["cancel_requested_at"] is not None,
        error=run["error"],
        max_concurrency=run["config"].get("max_concurrency"),
    )


def _node(key: NodeKey, row: Row) -> NodeRow:
    return NodeRow(
        *key,
        row.state,
        NodeKind(row.kind),
        row.last_attempt,
        row.failures,
        row.abandoned,
        row.due_at,
        row.descriptor_hash,
        row.in_progress,
        row.error,
        row.detail,
    )


def _approval(row: Json) -> ApprovalRow:
    return ApprovalRow(
        row["decision"], row.get("note"), row.get("decided_by"), bool(row.get("expired"))
    )
