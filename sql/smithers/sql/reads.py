"""Named reads: each is a file in queries/, most give one document so that strings are decoded.

The file says what it gives; its parameters are written `%(name)s`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from psycopg.rows import class_row, scalar_row

from smithers.sql import codec
from smithers.sql.calls import Connection
from smithers.sql.errors import translated
from smithers.sql.rows import Event, FrameBody, Json

VERIFY = "verify"


@dataclass(frozen=True, slots=True)
class Found:
    """A row that breaks an invariant."""

    run_id: str | None
    node_id: str | None
    iteration: int | None
    detail: str


@cache
def query(name: str) -> bytes:
    """The text of queries/<name>.sql. Bytes: psycopg takes a str for SQL only as a literal."""
    return (files("smithers.sql") / "queries" / f"{name}.sql").read_bytes()


@cache
def invariants() -> tuple[str, ...]:
    """The names of the invariants that a query checks, in order."""
    folder = files("smithers.sql") / "queries" / VERIFY
    names = (f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return tuple(sorted(name.removesuffix(".sql").replace("_", "-") for name in names))


@contextmanager
def snapshot(connection: Connection, *, timeout: str = "15s") -> Generator[Connection]:
    """Everything read inside is of one moment. The connection must be in autocommit mode."""
    with translated(), connection.transaction():
        connection.execute("set transaction isolation level repeatable read, read only")
        connection.execute("select set_config('statement_timeout', %s, true)", [timeout])
        yield connection


def read_runs(
    connection: Connection,
    *,
    run_id: str | None = None,
    ended: bool = True,
    statuses: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[Json]:
    """Runs with the facts of their verdict, newest first: {run, facts}."""
    states = None if statuses is None else list(statuses)
    return _rows(connection, "runs", run_id=run_id, ended=ended, statuses=states, limit=limit)


def read_run_ids(connection: Connection, prefix: str) -> list[str]:
    """The run of this id first, if there is one, then up to five whose ids begin with it."""
    escaped = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return _rows(connection, "run_ids", run_id=prefix, pattern=f"{escaped}%")


def read_attempts(
    connection: Connection,
    run_id: str,
    *,
    node_id: str | None = None,
    iteration: int | None = None,
) -> list[Json]:
    """Attempts in the order of their claims, each with the process that had it."""
    return _rows(connection, "attempts", run_id=run_id, node_id=node_id, iteration=iteration)


def read_node(
    connection: Connection, run_id: str, node_id: str, *, iteration: int | None = None
) -> Json | None:
    """One node: {node, passes, upstream, descriptor}, None when there is none."""
    found: Json | None = _value(
        connection, "node", run_id=run_id, node_id=node_id, iteration=iteration
    )
    return found


def read_details(connection: Connection, run_id: str) -> Json:
    """Nodes, open waits, failures, queue and inbox of one run."""
    found: Json = _document(connection, "details", run_id=run_id)
    return found


def read_processes(connection: Connection) -> list[Json]:
    """The processes whose lease is current: {id, kind, host, pid, name, queues, lease_until}."""
    return list(_document(connection, "processes"))


def read_census(connection: Connection) -> Json:
    """Queue depths and runs by status: {queues: [{queue, depth, oldest}], runs: {status: n}}."""
    found: Json = _document(connection, "census")
    return found


def read_health(connection: Connection) -> Json:
    """What any Postgres says of itself, with or without our tables: {now, version, connections,
    max_connections, fsync, full_page_writes, synchronous_commit, read_only, in_recovery}.
    """
    found: Json = _document(connection, "health")
    return found


def read_living(connection: Connection) -> list[Json]:
    """How many processes live of each kind and release: {kind, version, processes}."""
    return _rows(connection, "health_processes")


def read_watch(
    connection: Connection, run_id: str, *, since: int | None = 0, limit: int = 0
) -> Json | None:
    """What a follower looks at in each poll: {status, last_seq, owner, events, processes, …}.

    Without `since`, where a follower begins that wants no old events: {finished, mounted} too.
    """
    found: Json | None = _value(connection, "watch", run_id=run_id, since=since, limit=limit)
    return found


def read_progress(
    connection: Connection, run_id: str, *, keys: Sequence[tuple[str, int]] | None, after: int
) -> Json:
    """What a live view needs: {now, status, created_at, ended_at, frames, nodes}.

    `frames` are the structures stored after frame `after`, `nodes` the rows of `keys`, or all.
    """
    wanted = None if keys is None else codec.encode(list(keys))
    found: Json = _document(connection, "progress", run_id=run_id, keys=wanted, after=after)
    return found


def run_exists(connection: Connection, run_id: str) -> bool:
    """Whether there is a run of that id."""
    return read_watch(connection, run_id) is not None


def read_demand(connection: Connection, *, queues: Sequence[str]) -> Json:
    """Whether there is work for a fleet that serves these queues: {active, due_in, processes}."""
    found: Json = _document(connection, "demand", queues=list(queues))
    return found


def read_figures(connection: Connection, run_id: str, *, owners: Sequence[int]) -> Json:
    """What a run has cost: {steps, repeated, interrupted, first_start, lost}; `lost` are those of
    the processes `owners` that ended without a goodbye.
    """
    found: Json = _document(connection, "figures", run_id=run_id, owners=list(owners))
    return found


def read_events(connection: Connection, run_id: str, *, since: int, limit: int) -> list[Event]:
    """Events after number `since`, in order."""
    with translated(), connection.cursor(row_factory=class_row(Event)) as cursor:
        parameters = {"run_id": run_id, "since": since, "limit": limit}
        return cursor.execute(query("events"), parameters).fetchall()


def read_outputs(
    connection: Connection, run_id: str, *, node_id: str | None, iteration: int | None
) -> list[Json]:
    """Values of finished nodes: {node_id, iteration, kind, attempt, value}."""
    return _rows(connection, "outputs", run_id=run_id, node_id=node_id, iteration=iteration)


def read_human_requests(connection: Connection, *, run_id: str | None) -> list[Json]:
    """Open questions to people, oldest first."""
    return _rows(connection, "human", run_id=run_id)


def read_stored_run(connection: Connection, run_id: str) -> Json | None:
    """What a resume compares: {run_id, workflow, path, source_hash, input, vcs_root, …}."""
    found: Json | None = _value(connection, "stored_run", run_id=run_id)
    return found


def read_manifest(connection: Connection, source_hash: str) -> Json | None:
    """The manifest of a stored bundle, without its bytes."""
    found: Json | None = _value(connection, "manifest", source_hash=source_hash)
    return found


def read_frame_bodies(connection: Connection, run_id: str | None) -> list[tuple[str, FrameBody]]:
    """The stored structures of a run or of all, in order, each with its run."""
    with translated(), connection.cursor() as cursor:
        found = cursor.execute(query("frame_bodies"), {"run_id": run_id}).fetchall()
    return [(run, FrameBody(number, base, body)) for run, number, base, body in found]


def read_violations(
    connection: Connection, invariant: str, *, run_id: str | None, limit: int
) -> list[Found]:
    """What breaks one invariant, in one run or in all."""
    name = f"{VERIFY}/{invariant.replace('-', '_')}"
    with translated(), connection.cursor(row_factory=class_row(Found)) as cursor:
        return cursor.execute(query(name), {"run_id": run_id, "limit": limit}).fetchall()


def _document(connection: Connection, name: str, **parameters: object) -> Any:
    found = _value(connection, name, **parameters)
    if found is None:
        raise TypeError(f"the query {name} gave nothing")
    return found


def _value(connection: Connection, name: str, **parameters: object) -> Any:
    rows = _rows(connection, name, **parameters)
    return rows[0] if rows else None


def _rows(connection: Connection, name: str, **parameters: object) -> list[Any]:
    with translated(), connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query(name), parameters).fetchall()
