"""What a test reads of a run."""

from __future__ import annotations

from datetime import datetime

from smithers.testing.bodies import Call
from smithers.testing.errors import error_of
from smithers.testing.results import Results, names_of
from smithers.testing.show import headline
from smithers.workflow.errors import SmithersError
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import NodeState, RunStatus


class RunView(Results):
    """A run as its rows have it after the last frame."""

    __test__ = False  # a class that pytest must not collect

    @property
    def status(self) -> RunStatus:
        """The run's status; equals its text: `run.status == "finished"`."""
        return self._store.status

    @property
    def error(self) -> SmithersError | None:
        """Why the run failed."""
        return error_of(self._store.run["error"])

    @property
    def now(self) -> datetime:
        """The fake clock."""
        return self._store.now

    @property
    def states(self) -> dict[str, NodeState]:
        """The state of every task, wait and loop that a frame has mounted, in its last pass."""
        return {key[0]: state for key, state in sorted(self.nodes.items(), key=_pass)}

    @property
    def nodes(self) -> dict[NodeKey, NodeState]:
        """The same for every pass, by `(id, iteration)`, in the order of mounting."""
        return {key: row.state for key, row in self._store.nodes.items()}

    @property
    def waiting(self) -> dict[str, str]:
        """What the run waits for: "approval", "human", "event", "timer" or "retry", by node id."""
        blocked = self._store.last.get("blocked", ())
        return {str(each["node_id"]): str(each["reason"]) for each in blocked}

    @property
    def calls(self) -> list[Call]:
        """Every attempt that ran, in order."""
        return list(self._player.calls)

    def calls_of(self, node_id: str) -> list[Call]:
        """The attempts of one task, all passes, in order."""
        return [call for call in self._player.calls if node_id in names_of(call.node_id)]

    def __repr__(self) -> str:
        states = ", ".join(f"{name} {state.value}" for name, state in self.states.items())
        return f"<run of {self._store.workflow.name!r}: {headline(self._store)}; {states}>"


def _pass(item: tuple[NodeKey, NodeState]) -> int:
    return item[0][1]
