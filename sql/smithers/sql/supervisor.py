"""The supervisor's transactions: T7 reclaim attempts and runs, expire processes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from smithers.sql import codec
from smithers.sql.calls import Connection, flags, rows, scalars
from smithers.sql.rows import ExpiredProcess, Json, ReclaimedRun, Repairs, StaleLease


def beat_and_look(
    connection: Connection, owner: int, *, lease: timedelta, late: timedelta, grace: timedelta
) -> Repairs:
    """Renew the supervisor's own lease and say what there is to repair, in one query."""
    return rows(
        connection,
        Repairs,
        "select * from smithers_p1.beat_and_look(%s, %s, %s, %s)",
        owner,
        lease,
        late,
        grace,
    )[0]


def stale_leases(connection: Connection, *, limit: int = 500) -> list[StaleLease]:
    """Give attempts whose lease has expired, oldest first."""
    return rows(connection, StaleLease, "select * from smithers_p1.stale_leases(%s)", limit)


def reclaim_attempts(connection: Connection, items: Sequence[Json], *, poison: int) -> list[bool]:
    """Abandon attempts whose lease is still expired and whose token is still current."""
    return flags(
        connection,
        "select * from smithers_p1.reclaim_attempts(%s::jsonb, %s)",
        items,
        codec.encode(items),
        poison,
    )


def reclaim_runs(
    connection: Connection, owner: int, claim_id: UUID, *, limit: int = 100
) -> list[ReclaimedRun]:
    """Take runs from dead owners and hand them on."""
    return rows(
        connection,
        ReclaimedRun,
        "select * from smithers_p1.reclaim_runs(%s, %s, %s)",
        owner,
        claim_id,
        limit,
    )


def expire_processes(connection: Connection, grace: timedelta) -> list[ExpiredProcess]:
    """Declare processes dead whose lease ended `grace` ago."""
    return rows(connection, ExpiredProcess, "select * from smithers_p1.expire_processes(%s)", grace)


def live_owners(connection: Connection) -> set[int]:
    """Give the processes that are current."""
    return set(scalars(connection, "select id from smithers_p1.live_owners()"))


def live_claims(connection: Connection, claim_ids: Sequence[UUID]) -> set[UUID]:
    """Give those of the claim ids that hold a lease."""
    return set(
        scalars(connection, "select claim_id from smithers_p1.live_claims(%s)", list(claim_ids))
    )
