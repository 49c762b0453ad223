"""Decide about runs: pause, cancel, approve, deny, signal, answer.

Each is one transaction that also wakes the run. A `request_id` makes a repeat return the first
result, and another request under it is refused; it is made here unless given.
"""

from __future__ import annotations

from typing import Final, Literal
from uuid import uuid4

from smithers.operations.answers import check_answer
from smithers.operations.errors import SIGNAL_NAME_INVALID, OperationError
from smithers.operations.idempotency import Compared, check_same_decision
from smithers.operations.ids import known_run_id
from smithers.sql import operator, reads
from smithers.sql.calls import Connection
from smithers.sql.rows import Json

MAX_SIGNAL_NAME_BYTES: Final = 256


def pause(connection: Connection, run_id: str) -> Json:
    """Ask a run to pause: {run_id, status, in_flight}.

    Raises UnknownRun, Refused (RUN_ALREADY_ENDED).
    """
    return operator.pause_run(connection, known_run_id(run_id))


def cancel(connection: Connection, run_id: str) -> Json:
    """Ask a run to cancel: {run_id, status, in_flight}.

    Raises UnknownRun, Refused (RUN_ALREADY_ENDED).
    """
    return operator.cancel_run(connection, known_run_id(run_id))


def approve(
    connection: Connection,
    run_id: str,
    *,
    node_id: str | None = None,
    iteration: int | None = None,
    by: str | None = None,
    note: str | None = None,
    request_id: str | None = None,
) -> Json:
    """Approve an open request; the only one of the run, or of its node, when none is named.

    Raises UnknownRun, Refused (APPROVAL_UNKNOWN, _AMBIGUOUS, _ALREADY_DECIDED, RUN_ALREADY_ENDED),
    OperationError (IDEMPOTENCY_KEY_REUSED).
    """
    return _decide(
        connection, "approved", run_id, node_id, iteration, by=by, note=note, request_id=request_id
    )


def deny(
    connection: Connection,
    run_id: str,
    *,
    node_id: str | None = None,
    iteration: int | None = None,
    by: str | None = None,
    note: str | None = None,
    request_id: str | None = None,
) -> Json:
    """Deny an open request, which fails its node. As `approve`."""
    return _decide(
        connection, "denied", run_id, node_id, iteration, by=by, note=note, request_id=request_id
    )


def _decide(
    connection: Connection,
    decision: Literal["approved", "denied"],
    run_id: str,
    node_id: str | None,
    iteration: int | None,
    *,
    by: str | None,
    note: str | None,
    request_id: str | None,
) -> Json:
    iteration = None if node_id is None else iteration
    answer = operator.decide_approval(
        connection,
        {
            "run_id": known_run_id(run_id),
            "node_id": node_id,
            "iteration": iteration,
            "decision": decision,
            "by": by,
            "note": note,
            "request_id": request_id or _request_id(),
        },
    )
    compared = {**_key(answer, node_id, iteration), "decision": (answer["decision"], decision)}
    check_same_decision(answer, key=request_id, compared=compared)
    return answer


def signal(
    connection: Connection,
    run_id: str,
    name: str,
    payload: object = None,
    *,
    request_id: str | None = None,
) -> Json:
    """Put a signal into a run's inbox: {run_id, name, seq, status}.

    Raises UnknownRun, Refused (RUN_ALREADY_ENDED), OperationError (SIGNAL_NAME_INVALID,
    IDEMPOTENCY_KEY_REUSED), BadValue.
    """
    if not name.strip() or len(name.encode(errors="replace")) > MAX_SIGNAL_NAME_BYTES:
        raise OperationError(
            SIGNAL_NAME_INVALID, f"a signal's name has 1 to {MAX_SIGNAL_NAME_BYTES} bytes"
        )
    answer = operator.send_signal(
        connection,
        {
            "run_id": known_run_id(run_id),
            "name": name,
            "payload": payload,
            "request_id": request_id or _request_id(),
        },
    )
    if answer["repeated"]:
        first = reads.read_events(connection, run_id, since=answer["seq"] - 1, limit=1)[0]
        compared = {"name": (first.payload["name"], name)}
        check_same_decision(answer, key=request_id, compared=compared)
    return answer


def answer_human(
    connection: Connection,
    run_id: str,
    response: object,
    *,
    node_id: str | None = None,
    iteration: int | None = None,
    by: str | None = None,
    request_id: str | None = None,
) -> Json:
    """Answer an open question; the only one when no node is named.

    An answer that doesn't fit the question's schema is refused here, where it can be corrected.
    Raises UnknownRun, Refused (HUMAN_REQUEST_UNKNOWN, _AMBIGUOUS), OperationError (ANSWER_INVALID,
    IDEMPOTENCY_KEY_REUSED).
    """
    iteration = None if node_id is None else iteration
    open_ones = reads.read_human_requests(connection, run_id=known_run_id(run_id))
    asked = [
        each
        for each in open_ones
        if node_id in (None, each["node_id"]) and iteration in (None, each["iteration"])
    ]
    if len(asked) == 1:
        check_answer(response, asked[0]["schema"])
    answer = operator.answer_human(
        connection,
        {
            "run_id": run_id,
            "node_id": node_id,
            "iteration": iteration,
            "response": response,
            "by": by,
            "request_id": request_id or _request_id(),
        },
    )
    check_same_decision(answer, key=request_id, compared=_key(answer, node_id, iteration))
    return answer


def list_human(connection: Connection, *, run_id: str | None = None) -> list[Json]:
    """List open questions to people, oldest first: what `human answer` needs to know."""
    return reads.read_human_requests(
        connection, run_id=None if run_id is None else known_run_id(run_id)
    )


def _key(answer: Json, node_id: str | None, iteration: int | None) -> Compared:
    """Give which node was decided, and which was asked for."""
    return {
        "node_id": (answer["node_id"], node_id),
        "iteration": (answer["iteration"], iteration),
    }


def _request_id() -> str:
    return uuid4().hex
