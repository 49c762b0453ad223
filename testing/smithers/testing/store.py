"""What workers, people and the clock write to the rows of a run, as the stored functions do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from smithers.testing.rows import RunRows
from smithers.testing.stored import stored_json
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import ENDED_RUNS, WAITING_RUNS, NodeState, RunStatus


class RunStore(RunRows):
    """The rows of one run, and each change of them from outside a frame."""

    def start_attempt(self, key: NodeKey) -> int:
        """Claim a ready task; give the attempt's number."""
        row = self.nodes[key]
        assert row.state is NodeState.READY, (key, row.state)
        assert not row.in_progress, key
        row.in_progress = True
        row.last_attempt += 1
        return row.last_attempt

    def finish_attempt(self, key: NodeKey, output: Mapping[str, object]) -> None:
        """End an attempt with an output. Raises AttemptError (OUTPUT_NOT_STORABLE) before it does
        anything.
        """
        row = self.nodes[key]
        assert row.in_progress, key
        self.keep_output(key, output)
        self.move(key, NodeState.READY, NodeState.FINISHED)
        row.in_progress, row.due_at, row.error = False, None, None
        self._wake()

    def fail_attempt(
        self, key: NodeKey, error: Mapping[str, object], retry_in: float | None
    ) -> None:
        """End an attempt with an error; a further try is due in so many seconds, or never."""
        row = self.nodes[key]
        assert row.in_progress, key
        row.in_progress, row.failures, row.error = False, row.failures + 1, dict(error)
        if retry_in is None:
            self.move(key, NodeState.READY, NodeState.FAILED)
        else:
            self.move(key, NodeState.READY, NodeState.PENDING)
            row.due_at = self.now + timedelta(seconds=retry_in)
        self._wake()

    def decide_approval(self, key: NodeKey, *, approved: bool, note: str | None, by: str) -> None:
        """Decide an open approval."""
        row = self.approvals[key]
        assert row["decision"] is None, key
        decision = "approved" if approved else "denied"
        row |= {"decision": decision, "note": note, "decided_by": by}
        self._wake()

    def answer_human(self, key: NodeKey, response: object) -> None:
        """Answer a question to a person."""
        answer = stored_json(response, f"the answer to {key[0]!r}")
        self.humans[key] |= {"status": "answered", "response": answer}
        self._wake()

    def send_signal(self, name: str, payload: object) -> int:
        """Put a signal into the inbox; give its number."""
        seq = len(self.signals) + 10
        stored = stored_json(payload, f"the payload of {name!r}")
        self.signals.append({"seq": seq, "name": name, "payload": stored, "taken": None})
        self._wake()
        return seq

    def fire_due(self) -> None:
        """Fire what is due by now: timers, expiries, retries, quotas. Each once."""
        if self.status in ENDED_RUNS:
            return
        fired = list(self._fire())
        if fired:
            self._wake()

    def next_due(self) -> tuple[datetime, bool] | None:
        """Give when the earliest row is due, and whether time alone brings it on: it is no
        deadline of a person or a signal. None when nothing is due.
        """
        due = list(self._dues())
        return min(due, key=lambda each: (each[0], each[1])) if due else None

    def resume_run(self) -> None:
        """Give failed and cancelled nodes another chance, and let the run go on."""
        for key, row in self.nodes.items():
            if row.state in (NodeState.FAILED, NodeState.CANCELLED):
                row.state, row.failures, row.abandoned = NodeState.PENDING, 0, 0
                row.due_at = row.error = row.detail = None
                self._supersede(key)
        self.run |= {"pause_requested_at": None, "cancel_requested_at": None, "error": None}
        self.run["status"] = RunStatus.RUNNING.value
        self._wake()

    def _dues(self) -> Iterator[tuple[datetime, bool]]:
        for row in self.nodes.values():
            if row.due_at is not None:
                yield row.due_at, row.state is not NodeState.WAITING_EVENT
        for each in self.timers.values():
            if not each["fired"]:
                yield moment(each["due_at"]), True
        for each in self.approvals.values():
            if each["due_at"] and each["decision"] is None and not each.get("expired"):
                yield moment(each["due_at"]), False
        for each in self.humans.values():
            if each["due_at"] and each["status"] == "pending":
                yield moment(each["due_at"]), False

    def _fire(self) -> Iterator[NodeKey]:
        for key, row in self.nodes.items():
            if row.due_at is not None and row.due_at <= self.now:
                row.due_at = None
                if row.state is NodeState.WAITING_QUOTA:
                    row.state = NodeState.PENDING
                yield key
        for key, each in self.timers.items():
            if not each["fired"] and self._over(each["due_at"]):
                each["fired"] = True
                yield key
        for key, each in self.approvals.items():
            if each["decision"] is None and not each.get("expired") and self._over(each["due_at"]):
                each["expired"] = True
                yield key
        for key, each in self.humans.items():
            if each["status"] == "pending" and self._over(each["due_at"]):
                each["status"] = "expired"
                yield key

    def _over(self, due_at: str | None) -> bool:
        return due_at is not None and moment(due_at) <= self.now

    def _wake(self) -> None:
        self.run["wanted_seq"] += 1
        if self.status in WAITING_RUNS:
            self.run["status"] = RunStatus.RUNNING.value


def moment(text: str) -> datetime:
    """Give the moment of an ISO text, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)
