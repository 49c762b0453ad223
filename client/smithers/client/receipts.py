"""What a decision leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from smithers.sql.rows import Json
from smithers.workflow.states import RunStatus as RunState


@dataclass(frozen=True, slots=True)
class Receipt:
    """A decision that is stored. `seq` is the number of its event in the run's log, `status` the
    state of the run now, `repeated` whether its idempotency key had brought it about before.
    """

    run_id: str
    status: RunState
    seq: int
    repeated: bool
    node_id: str | None = None
    iteration: int | None = None

    @classmethod
    def of(cls, answer: Json) -> Self:
        """Read what an operation answered."""
        return cls(
            run_id=answer["run_id"],
            status=RunState(answer["status"]),
            seq=answer["seq"],
            repeated=answer["repeated"],
            node_id=answer.get("node_id"),
            iteration=answer.get("iteration"),
        )
