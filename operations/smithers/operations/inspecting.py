"""Look at one node from close by: attempts, what it waits for, what it was to do, output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smithers.operations.looking import unknown_node, unknown_run
from smithers.operations.results import Result
from smithers.process.attempt_files import AttemptKey, log_path
from smithers.sql import reads
from smithers.sql.calls import Connection
from smithers.sql.rows import Json


@dataclass(frozen=True, slots=True)
class NodeReport(Result):
    """A node in one pass. `node` is its row of node_view, `attempts` are in order and have `log`,
    the path on the host that ran them; `output` is None also for what has none yet.
    """

    node: Json
    passes: int
    upstream: list[Json]
    attempts: list[Json]
    descriptor: Json | None
    output: Any

    def to_json(self) -> Json:
        """Give the row with the rest beside it."""
        return {
            **self.node,
            "passes": self.passes,
            "upstream": self.upstream,
            "attempts": self.attempts,
            "descriptor": self.descriptor,
            "output": self.output,
        }


def inspect_node(
    connection: Connection, home: Path, run_id: str, node_id: str, *, iteration: int | None = None
) -> NodeReport:
    """Inspect a node, in its last pass unless one is named.

    Raises UnknownRun, OperationError (NODE_UNKNOWN).
    """
    with reads.snapshot(connection):
        if not reads.run_exists(connection, run_id):
            raise unknown_run(run_id)
        found = reads.read_node(connection, run_id, node_id, iteration=iteration)
        if found is None:
            nodes = reads.read_details(connection, run_id)["nodes"]
            raise unknown_node(run_id, node_id, iteration, nodes)
        chosen = int(found["node"]["iteration"])
        attempts = reads.read_attempts(connection, run_id, node_id=node_id, iteration=chosen)
        outputs = reads.read_outputs(connection, run_id, node_id=node_id, iteration=chosen)
    for attempt in attempts:
        key = AttemptKey(run_id, node_id, chosen, attempt["attempt"])
        attempt["log"] = str(log_path(home, key))
    return NodeReport(
        node=found["node"],
        passes=found["passes"],
        upstream=found["upstream"],
        attempts=attempts,
        descriptor=found["descriptor"],
        output=outputs[0]["value"] if outputs else None,
    )
