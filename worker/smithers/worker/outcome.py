"""How an attempt can end, and what is written about it."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Final, TypeAlias

from smithers.sql import codec
from smithers.sql.rows import ClaimedTask, Json
from smithers.workflow.attempts import AttemptError, next_try

TASK_TIMEOUT: Final = "TASK_TIMEOUT"
HEARTBEAT_TIMEOUT: Final = "HEARTBEAT_TIMEOUT"
EXECUTOR_DIED: Final = "EXECUTOR_DIED"
ENVIRONMENT_MISSING: Final = "ENVIRONMENT_MISSING"
WORKER_UNABLE: Final = "WORKER_UNABLE"

RELEASED_CODES: Final = frozenset({ENVIRONMENT_MISSING, WORKER_UNABLE})
"""The worker's fault, not the task's: another worker may do better, and no budget is used."""

_TAIL_CHARACTERS = 8_000
_DETAILS_CHARACTERS = 200_000
_RELEASE_CEILING = 300.0


@dataclass(frozen=True, slots=True)
class Finished:
    """The body returned a valid output: its JSON text, as the executor encoded it."""

    output: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt ended with a typed error."""

    error: Json


@dataclass(frozen=True, slots=True)
class Released:
    """The attempt is given back, no budget used; `retry_in` seconds, None for at once."""

    error: Json | None = None
    retry_in: float | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The run was cancelled, and the attempt's processes are dead."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The attempt was fenced: nothing more is written about it."""


Outcome: TypeAlias = Finished | Failed | Released | Cancelled | Dropped


def error_json(error: AttemptError, task: ClaimedTask, tail: str = "") -> Json:
    """An error as the rows hold it: it names the node, and shows what was printed last."""
    details: Json = {"node_id": task.node_id, "iteration": task.iteration, **error.details}
    if tail:
        details["output_tail"] = tail[-_TAIL_CHARACTERS:]
    if not _fits(details):
        details = {"node_id": task.node_id, "iteration": task.iteration, "truncated": True}
    return {"code": error.code, "message": error.message[:_TAIL_CHARACTERS], "details": details}


def _fits(details: Json) -> bool:
    try:
        return len(codec.encode(details)) <= _DETAILS_CHARACTERS
    except codec.BadValue:
        return False


def outcome_of(error: AttemptError, task: ClaimedTask, tail: str = "") -> Failed | Released:
    """Failed, or released when the error is the worker's and not the task's."""
    body = error_json(error, task, tail)
    if error.code in RELEASED_CODES:
        return Released(body, release_delay(task))
    return Failed(body)


def token(task: ClaimedTask) -> Json:
    """The key and the token of an attempt, as batch arguments name them."""
    return {
        "run_id": task.run_id,
        "node_id": task.node_id,
        "iteration": task.iteration,
        "attempt": task.attempt,
        "claim_id": str(task.claim_id),
    }


def complete_item(task: ClaimedTask, outcome: Finished) -> bytes:
    """The JSON text of one item for `complete_attempts`; the output is not parsed again."""
    output = task.descriptor["output"]
    head = codec.encode(
        {
            **token(task),
            "name": output["name"],
            "shape": output["shape"],
            "seconds": round(outcome.seconds, 6),
        }
    )
    return head[:-1].encode() + b',"output":' + outcome.output + b"}"


def end_item(task: ClaimedTask, outcome: Failed | Released | Cancelled) -> Json:
    """One item for `end_attempts`, with the delay before the next try."""
    match outcome:
        case Failed(error):
            return {
                **token(task),
                "state": "failed",
                "retry_in": retry_delay(task, str(error["code"])),
                "error": error,
            }
        case Released(error, retry_in):
            return {**token(task), "state": "released", "retry_in": retry_in, "error": error}
        case Cancelled():
            return {**token(task), "state": "cancelled"}


def retry_delay(task: ClaimedTask, code: str) -> float | None:
    """Seconds until the next try of a task that failed just now; None when there is none."""
    failures = task.failures + 1
    policy = next_try(task.descriptor, failures, code)
    if policy is None:
        return None
    return policy.delay(failures, random.random()).total_seconds()  # noqa: S311  # jitter


def release_delay(task: ClaimedTask) -> float:
    """Seconds before a task that this worker couldn't run is offered again: it doubles with
    the tries that did not count, up to five minutes, so that no worker spins on it.
    """
    uncounted = max(0, task.attempt - task.failures - 1)
    return min(_RELEASE_CEILING, 5.0 * 2.0 ** min(uncounted, 10))


def parse_error(body: object) -> AttemptError:
    """The error that an executor sent. Raises ValueError for anything else."""
    match body:
        case {"code": str(code), "message": str(message), "details": dict(details)}:
            return AttemptError(code, message, details)
        case _:
            raise ValueError(f"an executor sent {json.dumps(body)[:200]}")
