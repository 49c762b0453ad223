"""The worker's transactions: T3 claim, T4 heartbeat, T5 complete, T6 end without a result."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal
from uuid import UUID

from smithers.sql import codec
from smithers.sql.calls import Connection, flags, rows, scalar
from smithers.sql.rows import BeatVerdict, ClaimedTask, Json

Outcome = Literal["mine", "done", "lost"]


def claim_tasks(
    connection: Connection,
    owner: int,
    claim_id: UUID,
    *,
    queues: Sequence[str],
    limit: int,
    free: int,
    lease: timedelta,
) -> list[ClaimedTask]:
    """Claim up to `limit` ready tasks, queues in the order given; `free` slots can take one that
    must run alone. Raises ProcessExpired.
    """
    return rows(
        connection,
        ClaimedTask,
        "select * from smithers_p1.claim_tasks(%s, %s, %s, %s, %s, %s)",
        owner,
        claim_id,
        list(queues),
        limit,
        free,
        lease,
    )


def claimed_by(connection: Connection, owner: int, claim_id: UUID) -> list[ClaimedTask]:
    """Give what a claim holds whose reply was lost."""
    return rows(
        connection,
        ClaimedTask,
        "select * from smithers_p1.claimed_by(%s, %s)",
        owner,
        claim_id,
    )


def heartbeat(
    connection: Connection, owner: int, items: Sequence[Json], lease: timedelta
) -> list[BeatVerdict]:
    """Beat for the process and all its attempts; give those that are lost or cancelled.

    Raises ProcessExpired when the process was declared dead.
    """
    return rows(
        connection,
        BeatVerdict,
        "select * from smithers_p1.heartbeat(%s, %s::jsonb, %s)",
        owner,
        codec.encode(items),
        lease,
    )


def log_starts(connection: Connection, items: Sequence[Json]) -> int:
    """Log the start of attempts that have been running for a beat; give how many were new."""
    return int(scalar(connection, "select smithers_p1.log_starts(%s::jsonb)", codec.encode(items)))


def complete_attempts(
    connection: Connection, items: Sequence[Json], *, notify: bool = True
) -> list[bool]:
    """Finish attempts with their outputs; False where the token was not current.

    Raises UnknownShape.
    """
    return flags(
        connection,
        "select * from smithers_p1.complete_attempts(%s::jsonb, %s)",
        items,
        codec.encode(items),
        notify,
    )


def complete_encoded(
    connection: Connection, items: Sequence[bytes], *, notify: bool = True
) -> list[bool]:
    """As `complete_attempts`, with items that are JSON text by the codec's rules already.

    A worker passes outputs on as the bytes that its executor made; it never parses them.
    """
    return flags(
        connection,
        "select * from smithers_p1.complete_attempts(%s::jsonb, %s)",
        items,
        (b"[" + b",".join(items) + b"]").decode(),
        notify,
    )


def end_attempts(
    connection: Connection, items: Sequence[Json], *, notify: bool = True
) -> list[bool]:
    """End attempts without a result (`state` in each item); False where the token was stale."""
    return flags(
        connection,
        "select * from smithers_p1.end_attempts(%s::jsonb, %s)",
        items,
        codec.encode(items),
        notify,
    )


def attempt_outcomes(connection: Connection, items: Sequence[Json]) -> list[Outcome]:
    """Settle an outcome unknown by token: still mine, done by me, or lost."""
    found = {
        outcome["ord"]: outcome["outcome"]
        for outcome in scalar(
            connection,
            "select coalesce(jsonb_agg(o), '[]') from smithers_p1.attempt_outcomes(%s::jsonb) o",
            codec.encode(items),
        )
    }
    return [found[position] for position in range(1, len(items) + 1)]
