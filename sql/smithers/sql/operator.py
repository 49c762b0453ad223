"""What people and programs do to runs: T1 create, T8 decide, T10 pause, cancel."""

from __future__ import annotations

from typing import Any

from smithers.sql import codec
from smithers.sql.calls import Connection, rows, scalar
from smithers.sql.rows import Json, Source


def create_run(connection: Connection, run: Json) -> Json:
    """Create a run, or find the one that its `request_id` made. Gives {run_id, created}.

    Raises Refused (RUN_EXISTS).
    """
    return _document(
        scalar(connection, "select smithers_p1.create_run(%s::jsonb)", codec.encode(run))
    )


def decide_approval(connection: Connection, decision: Json) -> Json:
    """Approve or deny: {run_id, node_id, iteration, decision, by, note, request_id}.

    Raises UnknownRun, Refused (APPROVAL_UNKNOWN, _AMBIGUOUS, _ALREADY_DECIDED, RUN_ALREADY_ENDED).
    """
    return _document(
        scalar(connection, "select smithers_p1.decide_approval(%s::jsonb)", codec.encode(decision))
    )


def answer_human(connection: Connection, answer: Json) -> Json:
    """Answer a request for a person: {run_id, node_id, iteration, response, by, request_id}."""
    return _document(
        scalar(connection, "select smithers_p1.answer_human(%s::jsonb)", codec.encode(answer))
    )


def send_signal(connection: Connection, signal: Json) -> Json:
    """Put a signal into a run's inbox: {run_id, name, payload, request_id}."""
    return _document(
        scalar(connection, "select smithers_p1.send_signal(%s::jsonb)", codec.encode(signal))
    )


def pause_run(connection: Connection, run_id: str) -> Json:
    """Ask a run to pause. Gives {run_id, status, in_flight}."""
    return _document(scalar(connection, "select smithers_p1.pause_run(%s)", run_id))


def cancel_run(connection: Connection, run_id: str) -> Json:
    """Ask a run to cancel. Gives {run_id, status, in_flight}."""
    return _document(scalar(connection, "select smithers_p1.cancel_run(%s)", run_id))


def lock_run(connection: Connection, run_id: str) -> None:
    """Keep others from changing a run until this transaction ends. Raises UnknownRun."""
    scalar(connection, "select (smithers_p1.lock_run(%s)).run_id", run_id)


def resume_run(connection: Connection, run_id: str) -> Json:
    """Make a run runnable again. Gives {run_id, from, status, owner}."""
    return _document(scalar(connection, "select smithers_p1.resume_run(%s)", run_id))


def accept_source(connection: Connection, run_id: str, source_hash: str) -> Json:
    """Make a run go on with another stored code version. Gives {run_id, from, to}.

    Raises UnknownRun, Refused (RUN_OWNED).
    """
    return _document(
        scalar(connection, "select smithers_p1.accept_source(%s, %s)", run_id, source_hash)
    )


def put_source(connection: Connection, source_hash: str, manifest: Json, body: bytes) -> bool:
    """Store a bundle; True when it was new."""
    return bool(
        scalar(
            connection,
            "select smithers_p1.put_source(%s, %s::jsonb, %s)",
            source_hash,
            codec.encode(manifest),
            body,
        )
    )


def get_source(connection: Connection, source_hash: str) -> Source | None:
    """Give a stored bundle, None when there is none."""
    found = rows(connection, Source, "select * from smithers_p1.get_source(%s)", source_hash)
    return found[0] if found else None


def _document(value: Any) -> Json:
    if not isinstance(value, dict):
        raise TypeError(f"a stored function gave {type(value).__name__}, not a document")
    return value
