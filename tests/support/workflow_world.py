"""A run without a database, and those who move it: workers, people, the clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from smithers.workflow.states import NodeState
from support.workflow_store import START, Key, Store

__all__ = ["START", "World"]


class World(Store):
    """One run that a test drives."""

    def ready(self) -> list[Key]:
        """Give what may be claimed."""
        return [k for k, row in self.nodes.items() if row.state == "ready" and not row.in_progress]

    def running(self) -> list[Key]:
        """Give what is in progress."""
        return [key for key, row in self.nodes.items() if row.in_progress]

    def claim(self, *key: Any) -> None:
        """Start an attempt."""
        found = _as_key(key)
        row = self.nodes[found]
        assert row.state == "ready"
        assert not row.in_progress
        row.in_progress = True
        row.last_attempt += 1
        self.started.append(found)

    def complete(self, *key: Any, **output: Any) -> None:
        """Finish an attempt, claimed or not yet."""
        found = _as_key(key)
        if not self.nodes[found].in_progress:
            self.claim(*found)
        self.move(found, NodeState.READY, NodeState.FINISHED)
        self.nodes[found].in_progress = False
        self.keep_output(found, output)
        self._wake()

    def fail(self, *key: Any, retry_in: float | None = None, code: str = "BOOM") -> None:
        """End an attempt without success: for good, or with a further try."""
        found = _as_key(key)
        row = self.nodes[found]
        if not row.in_progress:
            self.claim(*found)
        row.in_progress = False
        row.failures += 1
        if retry_in is None:
            self.move(found, NodeState.READY, NodeState.FAILED)
            row.error = {"code": code, "message": f"{found[0]} broke"}
        else:
            self.move(found, NodeState.READY, NodeState.PENDING)
            row.due_at = self.now + timedelta(seconds=retry_in)
        self._wake()

    def abandon(self, *key: Any) -> None:
        """Lose a worker."""
        row = self.nodes[_as_key(key)]
        assert row.in_progress
        row.in_progress, row.abandoned, row.state = False, row.abandoned + 1, NodeState.PENDING
        self._wake()

    def decide(self, *key: Any, approved: bool = True, note: str | None = None) -> None:
        """Answer an approval."""
        row = self.approvals[_as_key(key)]
        assert row["decision"] is None
        row |= {"decision": "approved" if approved else "denied", "note": note, "decided_by": "ann"}
        self._wake()

    def answer(self, *key: Any, response: object) -> None:
        """Answer a human task."""
        self.humans[_as_key(key)] |= {"status": "answered", "response": response}
        self._wake()

    def signal(self, name: str, payload: object = None) -> int:
        """Send a signal."""
        seq = len(self.signals) + 10
        self.signals.append({"seq": seq, "name": name, "payload": payload, "taken": None})
        self._wake()
        return seq

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and fire what is due."""
        self.now += timedelta(seconds=seconds)
        for row in self.timers.values():
            row["fired"] = row["fired"] or datetime.fromisoformat(row["due_at"]) <= self.now
        for row in self.approvals.values():
            row["expired"] = row["decision"] is None and _over(row["due_at"], self.now)
        for row in self.humans.values():
            if row["status"] == "pending" and _over(row["due_at"], self.now):
                row["status"] = "expired"
        for node in self.nodes.values():
            if node.due_at is not None and node.due_at <= self.now:
                node.due_at = None
                if node.state == "waiting-quota":
                    node.state = NodeState.PENDING
        self._wake()

    def resume(self) -> None:
        """Resume, as `resume_run` does."""
        for key, row in self.nodes.items():
            if row.state in ("failed", "cancelled"):
                row.state, row.failures, row.abandoned = NodeState.PENDING, 0, 0
                row.due_at = row.error = row.detail = None
                for requests in (self.approvals, self.humans, self.timers):
                    requests.pop(key, None)
        self.run |= {"pause_requested_at": None, "cancel_requested_at": None, "error": None}
        self.run["status"] = "running"
        self._wake()

    def state(self, *key: Any) -> str:
        """Give a node's state."""
        return self.nodes[_as_key(key)].state.value

    def states(self) -> dict[Key, str]:
        """Give every node's state."""
        return {key: row.state.value for key, row in self.nodes.items()}

    def _wake(self) -> None:
        self.run["wanted_seq"] += 1
        if self.run["status"].startswith("waiting"):
            self.run["status"] = "running"


def _as_key(key: tuple[Any, ...]) -> Key:
    return (key[0], key[1] if len(key) > 1 else 0)


def _over(due_at: str | None, now: datetime) -> bool:
    return due_at is not None and datetime.fromisoformat(due_at) <= now
