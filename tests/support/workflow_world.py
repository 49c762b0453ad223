"""A run without a database that a test of the planner drives fact by fact."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from smithers.testing.rows import START, Row
from smithers.testing.store import RunStore
from smithers.testing.stored import Json
from smithers.workflow import Workflow
from smithers.workflow.document import FrameDoc
from smithers.workflow.keys import NodeKey
from smithers.workflow.settle import settle
from smithers.workflow.snapshot import Snapshot
from smithers.workflow.states import NodeState

__all__ = ["START", "World"]


class World(RunStore):
    """The rows of one run, loaded by way of JSON; keys are given as `id` or `id, iteration`.

    With `keep` the last structure and descriptors are remembered from frame to frame, as a
    renderer does; without, each frame is planned from the rows alone.
    """

    def __init__(
        self,
        workflow: Workflow,
        raw_input: object = None,
        *,
        config: Mapping[str, object] | None = None,
        keep: bool = True,
    ) -> None:
        super().__init__(workflow, raw_input, config=config)
        self.keep = keep
        self.frames: list[Json] = []
        self.completions: dict[NodeKey, int] = {}
        self.started: list[NodeKey] = []

    def document(self) -> Json:
        """Give what `load_run` gives, and `load_frames`."""
        outputs: Json = {}
        for (node_id, iteration), fields in self.outputs.items():
            outputs.setdefault(node_id, {})[str(iteration)] = fields
        return {
            "now": self.now.isoformat(),
            "run": self.run,
            "nodes": [_cells(key, row) for key, row in self.nodes.items()],
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
        """Load, by way of JSON; both ways of loading must agree."""
        loaded = Snapshot.from_json(json.loads(json.dumps(self.document())))
        assert super().snapshot() == replace(loaded, frames=())
        return loaded

    def settle(self) -> FrameDoc:
        """Render without committing."""
        previous = self.structure if self.keep else None
        memo = self.memo if self.keep else None
        return settle(self.workflow, self.snapshot(), previous=previous, memo=memo)

    def commit(self, doc: Json) -> None:
        """Do what `commit_frame` does, and keep the stored structures."""
        super().commit(doc)
        base, body = doc["structure"]["base"], doc["structure"]["body"]
        if body is None:
            return
        if base is None:
            self.frames.clear()
        number = self.run["frame_no"]
        self.frames.append({"frame_no": number, "base_frame_no": base, "body": body})

    def ready(self) -> list[NodeKey]:
        """Give what may be claimed."""
        return [k for k, row in self.nodes.items() if row.state == "ready" and not row.in_progress]

    def running(self) -> list[NodeKey]:
        """Give what is in progress."""
        return [key for key, row in self.nodes.items() if row.in_progress]

    def claim(self, *key: Any) -> None:
        """Start an attempt."""
        self.start_attempt(_as_key(key))
        self.started.append(_as_key(key))

    def complete(self, *key: Any, **output: Any) -> None:
        """Finish an attempt, claimed or not yet."""
        self._claim_late(key)
        self.finish_attempt(_as_key(key), output)

    def fail(self, *key: Any, retry_in: float | None = None, code: str = "BOOM") -> None:
        """End an attempt without success: for good, or with a further try."""
        self._claim_late(key)
        self.fail_attempt(_as_key(key), {"code": code, "message": f"{key[0]} broke"}, retry_in)

    def abandon(self, *key: Any) -> None:
        """Lose a worker."""
        row = self.nodes[_as_key(key)]
        assert row.in_progress
        row.in_progress, row.abandoned, row.state = False, row.abandoned + 1, NodeState.PENDING
        self._wake()

    def decide(self, *key: Any, approved: bool = True, note: str | None = None) -> None:
        """Answer an approval."""
        self.decide_approval(_as_key(key), approved=approved, note=note, by="ann")

    def answer(self, *key: Any, response: object) -> None:
        """Answer a human task."""
        self.answer_human(_as_key(key), response)

    def signal(self, name: str, payload: object = None) -> int:
        """Send a signal."""
        return self.send_signal(name, payload)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and fire what is due."""
        self.now += timedelta(seconds=seconds)
        self.fire_due()

    def resume(self) -> None:
        """Resume, as `resume_run` does."""
        self.resume_run()

    def keep_output(self, key: NodeKey, output: Mapping[str, object]) -> None:
        """Store an output, and count."""
        super().keep_output(key, output)
        self.completions[key] = self.completions.get(key, 0) + 1

    def state(self, *key: Any) -> str:
        """Give a node's state."""
        return self.nodes[_as_key(key)].state.value

    def states(self) -> dict[NodeKey, str]:
        """Give every node's state."""
        return {key: row.state.value for key, row in self.nodes.items()}

    def _claim_late(self, key: tuple[Any, ...]) -> None:
        if not self.nodes[_as_key(key)].in_progress:
            self.claim(*key)


def _as_key(key: tuple[Any, ...]) -> NodeKey:
    return (key[0], key[1] if len(key) > 1 else 0)


def _cells(key: NodeKey, row: Row) -> list[object]:
    return [
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
