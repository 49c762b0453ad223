"""Read what a run has made: outputs, its log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from smithers.operations.errors import OUTPUT_MISSING, OperationError
from smithers.operations.ids import known_run_id
from smithers.operations.looking import unknown_node, unknown_run
from smithers.operations.results import EventLine, NodeOutput
from smithers.sql import reads
from smithers.sql.calls import Connection
from smithers.sql.rows import Json
from smithers.workflow.states import ENDED_RUNS, RunStatus

PAGE: Final = 1_000
_SHORTEST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0


def outputs(connection: Connection, run_id: str) -> list[NodeOutput]:
    """Give the values of a run's finished nodes. Raises UnknownRun."""
    with reads.snapshot(connection):
        _existing(connection, run_id)
        rows = reads.read_outputs(connection, run_id, node_id=None, iteration=None)
    return [NodeOutput(**row) for row in rows]


def output(
    connection: Connection, run_id: str, node_id: str, *, iteration: int | None = None
) -> NodeOutput:
    """Give the value of one node; of its last finished pass unless one is named.

    Raises UnknownRun, OperationError (NODE_UNKNOWN, OUTPUT_MISSING with the node's state).
    """
    with reads.snapshot(connection):
        _existing(connection, run_id)
        rows = reads.read_outputs(connection, run_id, node_id=node_id, iteration=iteration)
        if rows:
            return NodeOutput(**max(rows, key=_iteration))
        nodes = reads.read_details(connection, run_id)["nodes"]
    raise _no_output(run_id, node_id, iteration, nodes)


def events(
    connection: Connection, run_id: str, *, since: int = 0, limit: int = PAGE
) -> list[EventLine]:
    """Give up to `limit` events after number `since`. Raises UnknownRun."""
    found = reads.read_events(connection, known_run_id(run_id), since=since, limit=limit)
    if not found:
        _existing(connection, run_id)
    return [
        EventLine(e.seq, e.at, e.type, e.node_id, e.iteration, e.attempt, e.payload) for e in found
    ]


def _existing(connection: Connection, run_id: str) -> None:
    if not reads.run_exists(connection, known_run_id(run_id)):
        raise unknown_run(run_id)


def _iteration(row: Json) -> int:
    return int(row["iteration"])


def _no_output(
    run_id: str, node_id: str, iteration: int | None, nodes: list[Json]
) -> OperationError:
    same = [node for node in nodes if node["node_id"] == node_id]
    passes = [node for node in same if iteration in (None, node["iteration"])]
    if not passes:
        return unknown_node(run_id, node_id, iteration, nodes)
    last = passes[-1]
    return OperationError(
        OUTPUT_MISSING,
        f"{node_id!r} (iteration {last['iteration']}) is {last['state']} and has no output",
        details={"node_id": node_id, "iteration": last["iteration"], "state": last["state"]},
        hint=f"smithers why {run_id} shows what it waits for",
    )


def all_events(connection: Connection, run_id: str, *, since: int = 0) -> Iterator[EventLine]:
    """Give all events after number `since`, page by page. Raises UnknownRun."""
    page = events(connection, run_id, since=since)
    while page:
        yield from page
        page = events(connection, run_id, since=page[-1].seq) if len(page) == PAGE else []


def follow_events(connection: Connection, run_id: str, *, since: int = 0) -> Iterator[EventLine]:
    """Give events as they come, until the run has ended and all are given. Raises UnknownRun."""
    pause = _SHORTEST_PAUSE
    while True:
        watch = reads.read_watch(connection, known_run_id(run_id))
        if watch is None:
            raise unknown_run(run_id)
        if watch["last_seq"] > since:
            for event in all_events(connection, run_id, since=since):
                yield event
                since = event.seq
            pause = _SHORTEST_PAUSE
        elif RunStatus(watch["status"]) in ENDED_RUNS:
            return
        else:
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
