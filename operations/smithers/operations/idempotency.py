"""What a repeated request must have in common with the first one of its key.

The stored functions answer a known `request_id` with the first result, whatever else is asked.
Here a request that isn't the same one is refused, so that nobody takes another's run or decision
for their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from smithers.operations.admission import Candidate
from smithers.operations.errors import (
    IDEMPOTENCY_KEY_INVALID,
    IDEMPOTENCY_KEY_REUSED,
    OperationError,
)
from smithers.sql.rows import Json

MAX_KEY_BYTES: Final = 256

Compared: TypeAlias = Mapping[str, tuple[object, object]]
"""What each part of the first request was, and what it is now."""


def check_key(key: str) -> str:
    """Return a key that a person chose. Raises OperationError (IDEMPOTENCY_KEY_INVALID)."""
    if key.strip() and len(key.encode(errors="replace")) <= MAX_KEY_BYTES:
        return key
    raise OperationError(
        IDEMPOTENCY_KEY_INVALID,
        f"an idempotency key has 1 to {MAX_KEY_BYTES} bytes, not only spaces",
        hint="make it from what you already have, as order-42",
    )


def check_same_run(
    stored: Json, candidate: Candidate, *, key: str, run_id: str | None, max_concurrency: int | None
) -> None:
    """Raise OperationError (IDEMPOTENCY_KEY_REUSED) for a key that has started another run.

    Other code of the same file is the same request: the run goes on with what it started with.
    """
    same_file = stored["path"] == candidate.target.path
    same_code = stored["source_hash"] == candidate.bundle.source_hash
    limit = (stored["config"] or {}).get("max_concurrency")
    compared: dict[str, tuple[object, object]] = {
        "workflow": (stored["workflow"], candidate.workflow),
        "input": (stored["input"], candidate.input),
        "max_concurrency": (limit, max_concurrency),
    }
    if not (same_file or same_code):
        compared["path"] = (stored["path"], candidate.target.path)
    if run_id is not None:
        compared["run_id"] = (stored["run_id"], run_id)
    _refuse_different(key, f"run {stored['run_id']}", str(stored["run_id"]), compared)


def check_same_decision(answer: Json, *, key: str | None, compared: Compared) -> None:
    """Raise OperationError (IDEMPOTENCY_KEY_REUSED) for a repeat with another content.

    `compared` maps names to what was decided first and what is asked now; a None that is asked
    now leaves open what it is.
    """
    if not answer["repeated"]:
        return
    asked = {name: pair for name, pair in compared.items() if pair[1] is not None}
    what = f"a decision about run {answer['run_id']}"
    _refuse_different(key or "", what, str(answer["run_id"]), asked)


def _refuse_different(key: str, what: str, run_id: str, compared: Compared) -> None:
    different = {name: pair for name, pair in compared.items() if pair[0] != pair[1]}
    if different:
        raise OperationError(
            IDEMPOTENCY_KEY_REUSED,
            f"the idempotency key {key!r} was used for {what} with another "
            f"{' and '.join(different)}",
            details={
                "run_id": run_id,
                "first": {name: pair[0] for name, pair in different.items()},
                "given": {name: pair[1] for name, pair in different.items()},
            },
            hint="use a key of its own for each request, and repeat a request unchanged",
        )
