"""Look at runs: the list, one from close by, and why it is where it is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from smithers.operations.blocked import Blocked, blocked_by, revive_command
from smithers.operations.errors import NODE_UNKNOWN, OperationError
from smithers.operations.ids import known_run_id
from smithers.operations.results import Reason, RunStatus, RunSummary, Why
from smithers.operations.verdict import Facts, Serving, Verdict, judge
from smithers.sql import reads
from smithers.sql.calls import Connection
from smithers.sql.errors import UnknownRun
from smithers.sql.rows import Json
from smithers.workflow.errors import TASK_FAILED
from smithers.workflow.states import RunStatus as RunState

_TAIL_LINES: Final = 15


def list_runs(
    connection: Connection,
    *,
    ended: bool = False,
    statuses: Collection[RunState] | None = None,
    limit: int | None = None,
) -> list[RunSummary]:
    """List runs, newest first: those that haven't ended, all, or those in some states."""
    with reads.snapshot(connection):
        rows = reads.read_runs(
            connection,
            ended=ended or statuses is not None,
            statuses=None if statuses is None else [str(each) for each in statuses],
            limit=limit,
        )
        serving = Serving.of(reads.read_processes(connection))
    return [_summary(row, serving) for row in rows]


def status(connection: Connection, run_id: str) -> RunStatus:
    """Look at one run. Raises UnknownRun."""
    row, details, processes = _read(connection, run_id)
    return _status(row, details, processes)


def why(connection: Connection, run_id: str) -> Why:
    """Say why a run is where it is: waits, failures with the end of their output, what is
    unhealthy; each with the next command. Raises UnknownRun.
    """
    row, details, processes = _read(connection, run_id)
    seen = _status(row, details, processes)
    ended = Facts.of(row).ended
    reasons = [*_failures(seen, details["failures"]), *_losses(seen)]
    if not ended:
        reasons += [*map(_of_blocked, seen.blocked), *_unhealthy(seen)]
    if not reasons:
        reasons = list(_progress(seen))
    return Why(seen.run_id, seen.status, seen.verdict, ended, tuple(reasons))


def _read(connection: Connection, run_id: str) -> tuple[Json, Json, list[Json]]:
    with reads.snapshot(connection):
        rows = reads.read_runs(connection, run_id=known_run_id(run_id))
        if not rows:
            raise unknown_run(run_id)
        details = reads.read_details(connection, run_id)
        return rows[0], details, reads.read_processes(connection)


def unknown_run(run_id: str) -> UnknownRun:
    """Give the error that says that there is no such run."""
    return UnknownRun(
        "RUN_UNKNOWN", f"there is no run {run_id!r}", hint="smithers ps --all lists the runs"
    )


def unknown_node(
    run_id: str, node_id: str, iteration: int | None, nodes: Collection[Json]
) -> OperationError:
    """Give the error that says that a run with these nodes has no such one, or not in that pass."""
    names = sorted({str(node["node_id"]) for node in nodes})
    known = node_id in names and iteration is not None
    return OperationError(
        NODE_UNKNOWN,
        f"run {run_id} has no node {node_id!r}{f' ({iteration})' if known else ''}",
        details={"nodes": names[:10]},
        hint=f"it has {', '.join(names[:10])}" if names else f"smithers status {run_id}",
    )


def _summary(row: Json, serving: Serving) -> RunSummary:
    verdict, unhealthy = judge(Facts.of(row), serving, revive_command(row["run"]))
    return RunSummary(row["run"], verdict, row["facts"]["nodes"], unhealthy)


def _status(row: Json, details: Json, processes: list[Json]) -> RunStatus:
    facts, serving = Facts.of(row), Serving.of(processes)
    revive = revive_command(row["run"])
    verdict, unhealthy = judge(facts, serving, revive)
    alone = not (serving.schedulers or serving.supervisors)
    waits = blocked_by(row["run"], details, revive=revive if alone else None)
    return RunStatus(
        run=row["run"],
        verdict=verdict,
        blocked=() if facts.ended else waits,
        unhealthy=unhealthy,
        nodes=details["nodes"],
        owner=row["owner"],
        processes=processes,
    )


def _failures(seen: RunStatus, attempts: list[Json]) -> Iterator[Reason]:
    last = {(each["node_id"], each["iteration"]): each for each in attempts}
    again = None
    if seen.verdict is Verdict.FAILED:
        again = f"{revive_command(seen.run)}  # runs what failed again"
    for node in seen.nodes:
        if node["state"] == "failed":
            attempt = last.get((node["node_id"], node["iteration"]))
            error = node["error"] or (attempt or {}).get("error") or {}
            yield _failure(node, attempt, error, again)
    error = seen.run["error"]
    if seen.verdict is Verdict.FAILED and error and not _is_about_a_node(error):
        yield _failure({}, None, error, again)


def _is_about_a_node(error: Mapping[str, Any]) -> bool:
    details = error.get("details")
    return isinstance(details, dict) and "error" in details and "node_id" in details


def _failure(
    node: Mapping[str, Any],
    attempt: Mapping[str, Any] | None,
    error: Mapping[str, Any],
    command: str | None,
) -> Reason:
    return Reason(
        kind="failed",
        message=str(error.get("message") or "it failed"),
        node_id=node.get("node_id"),
        iteration=node.get("iteration"),
        attempt=attempt["attempt"] if attempt else None,
        code=str(error.get("code") or TASK_FAILED),
        tail=_tail(error.get("details")),
        since=attempt["finished_at"] if attempt else None,
        command=command,
    )


def _tail(details: object) -> str | None:
    """Give the end of the traceback, else of what was printed."""
    if not isinstance(details, dict):
        return None
    for name in ("traceback", "stderr", "output_tail", "output"):
        text = details.get(name)
        if isinstance(text, str) and text.strip():
            return "\n".join(text.rstrip().splitlines()[-_TAIL_LINES:])
    return None


def _losses(seen: RunStatus) -> Iterator[Reason]:
    """Give what makes a run degraded though it went on."""
    for node in seen.nodes:
        where = {"node_id": node["node_id"], "iteration": node["iteration"]}
        if node["state"] == "skipped":
            yield Reason("skipped", "it was skipped: its skip_if held", **where)
        elif (node["detail"] or {}).get("exhausted"):
            words = "the loop used up its passes, and until is still false"
            yield Reason("exhausted", words, **where)


def _of_blocked(wait: Blocked) -> Reason:
    return Reason(
        kind=wait.reason,
        message=wait.message,
        node_id=wait.node_id,
        iteration=wait.iteration,
        since=wait.since,
        due_at=wait.due_at,
        command=wait.command,
    )


def _unhealthy(seen: RunStatus) -> Iterator[Reason]:
    for each in seen.unhealthy:
        yield Reason(each.reason, each.message, since=each.since, command=each.command)


def _progress(seen: RunStatus) -> Iterator[Reason]:
    """Say what a run does that nothing blocks."""
    for node in seen.nodes:
        if node["state"] == "in-progress":
            yield Reason(
                "in-progress",
                "an attempt is running",
                node_id=node["node_id"],
                iteration=node["iteration"],
                attempt=node["current_attempt"],
                since=node["started_at"],
            )
        elif node["state"] == "ready":
            words = "it waits for a free slot of a worker"
            yield Reason("ready", words, node_id=node["node_id"], iteration=node["iteration"])
    if seen.run["dirty"]:
        yield Reason("dirty", "the next frame is due", since=seen.run["dirty_since"])
