"""Start a run: one transaction stores its code version and creates it."""

from __future__ import annotations

from uuid import uuid4

from smithers.bundle.store import store
from smithers.operations.admission import Candidate
from smithers.operations.errors import MAX_CONCURRENCY_INVALID, OperationError
from smithers.operations.idempotency import check_same_run
from smithers.operations.ids import check_run_id, new_run_id
from smithers.operations.results import Admitted
from smithers.sql import operator, reads
from smithers.sql.calls import Connection
from smithers.sql.rows import Json


def start_run(
    connection: Connection,
    candidate: Candidate,
    *,
    run_id: str | None = None,
    max_concurrency: int | None = None,
    request_id: str | None = None,
) -> Admitted:
    """Create a run of an admitted workflow; the same `request_id` again gives the first one.

    Raises OperationError (RUN_ID_INVALID, MAX_CONCURRENCY_INVALID, IDEMPOTENCY_KEY_REUSED), Refused
    (RUN_EXISTS), BadValue; nothing is written then.
    """
    if max_concurrency is not None and max_concurrency < 1:
        raise OperationError(
            MAX_CONCURRENCY_INVALID, f"max_concurrency is at least 1, not {max_concurrency}"
        )
    key = request_id or uuid4().hex
    chosen = check_run_id(run_id) if run_id is not None else new_run_id()
    with connection.transaction():
        store(connection, candidate.bundle)
        made = operator.create_run(
            connection,
            _document(candidate, chosen, max_concurrency, key),
        )
        if not made["created"]:
            stored = reads.read_stored_run(connection, made["run_id"])
            assert stored is not None, "a run that a key has made is there"
            check_same_run(
                stored, candidate, key=key, run_id=run_id, max_concurrency=max_concurrency
            )
    watch = reads.read_watch(connection, made["run_id"]) or {}
    return Admitted(
        run_id=made["run_id"],
        created=made["created"],
        status=str(watch.get("status", "running")),
        workflow=candidate.workflow,
        path=candidate.target.path,
    )


def _document(
    candidate: Candidate, run_id: str, max_concurrency: int | None, request_id: str
) -> Json:
    config = {} if max_concurrency is None else {"max_concurrency": max_concurrency}
    return {
        "run_id": run_id,
        "workflow": candidate.workflow,
        "path": candidate.target.path,
        "source_hash": candidate.bundle.source_hash,
        "input": candidate.input,
        "config": config,
        "vcs_type": candidate.checkout.type,
        "vcs_root": candidate.checkout.root,
        "vcs_revision": candidate.checkout.revision,
        "request_id": request_id,
    }
