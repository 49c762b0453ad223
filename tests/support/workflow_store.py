"""A run without a database: rows in dictionaries, loaded and committed as SQL does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from smithers.workflow import Workflow
from smithers.workflow.descriptor import Memo
from smithers.workflow.document import FrameDoc
from smithers.workflow.frame import FrameStructure
from smithers.workflow.settle import settle
from smithers.workflow.snapshot import Snapshot
from smithers.workflow.states import NODE_MOVES, RUN_MOVES, NodeState, RunStatus

Key = tuple[str, int]
Json = dict[str, Any]
START = datetime(2030, 1, 1, tzinfo=UTC)


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


class Store:
    """One run: what `load_run` gives and what `commit_frame` does."""

    def __init__(
        self,
        workflow: Workflow,
        raw_input: object = None,
        *,
        config: Mapping[str, object] | None = None,
        keep: bool = True,
    ) -> None:
        self.workflow = workflow
        self.keep = keep
        self.now: datetime = START
        self.memo = Memo()
        self.structure: FrameStructure | None = None
        self.run: Json = {
            "run_id": "r1",
            "workflow": workflow.name,
            "input": workflow.admit(raw_input),
            "config": dict(config or {}),
            "status": "running",
            "wanted_seq": 1,
            "frame_no": 0,
            "pause_requested_at": None,
            "cancel_requested_at": None,
            "error": None,
        }
        self.nodes: dict[Key, Row] = {}
        self.outputs: dict[Key, Json] = {}
        self.approvals: dict[Key, Json] = {}
        self.humans: dict[Key, Json] = {}
        self.timers: dict[Key, Json] = {}
        self.signals: list[Json] = []
        self.frames: list[Json] = []
        self.descriptors: dict[str, Json] = {}
        self.shapes: set[tuple[str, str]] = set()
        self.completions: dict[Key, int] = {}
        self.started: list[Key] = []
        self.last: Json = {}

    @property
    def status(self) -> str:
        """The stored status."""
        status: str = self.run["status"]
        return status

    def document(self) -> Json:
        """Give what `load_run` gives."""
        outputs: Json = {}
        for (node_id, iteration), fields in self.outputs.items():
            outputs.setdefault(node_id, {})[str(iteration)] = fields
        return {
            "now": self.now.isoformat(),
            "run": self.run,
            "nodes": [
                [
                    *key,
                    row.state.value,
                    row.kind,
                    row.last_attempt,
                    row.failures,
                    row.abandoned,
                    row.due_at and row.due_at.isoformat(),
                    row.descriptor_hash,
                    row.in_progress,
                    row.error,
                    row.detail,
                ]
                for key, row in self.nodes.items()
            ],
            "outputs": outputs,
            "approvals": list(self.approvals.values()),
            "human": list(self.humans.values()),
            "events": [
                {"node_id": s["taken"][0], "iteration": s["taken"][1], "payload": s["payload"]}
                for s in self.signals
                if s["taken"]
            ],
            "signals": [s for s in self.signals if not s["taken"]],
            "timers": list(self.timers.values()),
            "frames": self.frames,
        }

    def snapshot(self) -> Snapshot:
        """Load, by way of JSON."""
        return Snapshot.from_json(json.loads(json.dumps(self.document())))

    def settle(self) -> FrameDoc:
        """Render without committing."""
        previous = self.structure if self.keep else None
        memo = self.memo if self.keep else None
        return settle(self.workflow, self.snapshot(), previous=previous, memo=memo)

    def frame(self) -> Json:
        """Render and commit one frame; give its document."""
        doc = self.settle()
        body: Json = json.loads(json.dumps(doc.to_json()))
        self.commit(body)
        self.structure = doc.structure
        return body

    def commit(self, doc: Json) -> None:
        """Do what `commit_frame` does."""
        self.last = doc
        self.run["frame_no"] += 1
        if doc["structure"]["body"] is not None:
            base = doc["structure"]["base"]
            body = doc["structure"]["body"]
            number = self.run["frame_no"]
            if base is None:
                self.frames.clear()
            self.frames.append({"frame_no": number, "base_frame_no": base, "body": body})
        for each in doc["descriptors"]:
            assert each["hash"] not in self.descriptors
            self.descriptors[each["hash"]] = each["body"]
        self.shapes |= {(each["name"], each["shape"]) for each in doc["outputs"]}
        self._mount(doc["mount"])
        for move in doc["moves"]:
            self._move(move)
        self._open(doc)
        for each in doc["statics"]:
            key = _key(each)
            assert (each["name"], each["shape"]) in self.shapes
            self.move(key, NodeState.PENDING, NodeState.FINISHED)
            self.nodes[key].last_attempt += 1
            self.keep_output(key, each["output"])
        for each in doc["ready"]:
            key = _key(each)
            self.move(key, NodeState.PENDING, NodeState.READY)
            self.nodes[key].due_at = None
            assert self.nodes[key].descriptor_hash == each["descriptor_hash"]
            assert each["descriptor_hash"] in self.descriptors
            assert each["alone"] == (self.nodes[key].abandoned > 0)
        self._status(doc)

    def _status(self, doc: Json) -> None:
        old, new = RunStatus(self.run["status"]), RunStatus(doc["status"])
        assert old is new or (old, new) in RUN_MOVES, (old, new)
        self.run["status"] = new.value
        if new == "failed":
            self.run["error"] = doc["error"]

    def _mount(self, mounts: list[Json]) -> None:
        for each in mounts:
            key = _key(each)
            row = self.nodes.setdefault(key, Row(each["kind"]))
            assert row.state not in ("finished", "skipped", "ready"), (key, row)
            if each["descriptor_hash"] is not None:
                assert each["descriptor_hash"] in self.descriptors
            row.descriptor_hash = each["descriptor_hash"]
            row.upstream = each["upstream"]

    def _move(self, move: Json) -> None:
        key = _key(move)
        row = self.nodes[key]
        assert not (move["from"] == "ready" and row.in_progress)
        self.move(key, NodeState(move["from"]), NodeState(move["to"]))
        row.error = move["error"]
        row.detail = move["detail"] or row.detail
        due_in = move["due_in"]
        row.due_at = None if due_in is None else self.now + timedelta(seconds=due_in)
        if move["to"] == "cancelled":
            for requests in (self.approvals, self.humans, self.timers):
                requests.pop(key, None)

    def move(self, key: Key, old: NodeState, new: NodeState) -> None:
        """Move a node by compare-and-set, along a legal move."""
        row = self.nodes[key]
        assert row.state is old, (key, row.state, old, new)
        assert (old, new) in NODE_MOVES, (key, old, new)
        row.state = new

    def _open(self, doc: Json) -> None:
        for each in doc["approvals"]:
            key = _key(each)
            assert self.nodes[key].state == "waiting-approval"
            due = _due(self.now, each["timeout"])
            self.approvals.setdefault(
                key, {**_named(key), "decision": None, "due_at": due, "title": each["title"]}
            )
        for each in doc["human"]:
            key = _key(each)
            assert self.nodes[key].state == "waiting-approval"
            due = _due(self.now, each["timeout"])
            self.humans.setdefault(key, {**_named(key), "status": "pending", "due_at": due})
        for each in doc["timers"]:
            key = _key(each)
            assert self.nodes[key].state == "waiting-timer"
            due = each["until"] or _due(self.now, each["seconds"])
            self.timers.setdefault(key, {**_named(key), "due_at": due, "fired": False})
        for each in doc["consume"]:
            (signal,) = [s for s in self.signals if s["seq"] == each["signal_seq"]]
            assert signal["taken"] is None
            assert signal["name"] == each["name"]
            assert self.nodes[_key(each)].state == "finished"
            signal["taken"] = list(_key(each))

    def keep_output(self, key: Key, output: Json) -> None:
        """Store an output; a key has one."""
        assert key not in self.outputs, f"{key} finished twice"
        self.outputs[key] = output
        self.completions[key] = self.completions.get(key, 0) + 1


def _key(body: Json) -> Key:
    return (body["node_id"], body["iteration"])


def _named(key: Key) -> Json:
    return {"node_id": key[0], "iteration": key[1]}


def _due(now: datetime, seconds: float | None) -> str | None:
    return None if seconds is None else (now + timedelta(seconds=seconds)).isoformat()
