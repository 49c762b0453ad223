"""The duties of a supervisor, each one look and one repair; all of them are loops over state.

A duty takes a connection and returns what it did. It may be repeated, and run by any number of
supervisors at once: every repair looks at the token and at the clock of the database again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal
from uuid import uuid4

from smithers.process.sweeping import sweep_orphans
from smithers.sql import supervisor as sql
from smithers.sql.calls import Connection
from smithers.sql.rows import Json, StaleLease
from smithers.sql.scheduler import fire_due

LATE: Final = timedelta(seconds=5)
MAX_LEASES: Final = 5_000
_BATCH: Final = 200

Duty = Literal["attempt", "run", "due", "process", "orphan"]


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing that was repaired, or would be: which duty, what, and details for people."""

    duty: Duty
    what: str
    details: Json


def reclaim_attempts(
    connection: Connection, leases: Iterable[StaleLease], *, poison: int
) -> list[Repair]:
    """Abandon the attempts of lost leases; those that came back or moved on are left alone."""
    done: list[Repair] = []
    ordered = sorted(leases, key=lambda lease: (lease.run_id, lease.node_id, lease.iteration))
    for start in range(0, len(ordered), _BATCH):
        batch = ordered[start : start + _BATCH]
        accepted = sql.reclaim_attempts(connection, [_item(x) for x in batch], poison=poison)
        done += [_reclaimed(lease) for lease, yes in zip(batch, accepted, strict=True) if yes]
    return done


def reclaim_runs(connection: Connection, owner: int) -> list[Repair]:
    """Free the runs of dead schedulers, one batch; each is stamped with us, then handed on."""
    return [
        Repair("run", run.run_id, {"run_id": run.run_id, "previous_owner": run.previous_owner})
        for run in sql.reclaim_runs(connection, owner, uuid4())
    ]


def fire_late(connection: Connection) -> list[Repair]:
    """Fire due rows that no scheduler has fired in time, one batch."""
    fired = fire_due(connection, late=LATE)
    return [Repair("due", f"{fired} overdue rows", {"rows": fired})] if fired else []


def expire_processes(connection: Connection, grace: timedelta) -> list[Repair]:
    """Declare processes dead whose lease ended `grace` ago."""
    return [
        Repair(
            "process",
            f"{row.kind} {row.pid} on {row.host}",
            {"id": row.id, "kind": row.kind, "host": row.host, "pid": row.pid},
        )
        for row in sql.expire_processes(connection, grace)
    ]


def kill_orphans(connection: Connection) -> list[Repair]:
    """Kill the processes of this host whose executor or claim is gone. Raises psycopg.Error."""
    return [
        Repair("orphan", f"{count} processes of {mark.value}", {"mark": mark.value, "count": count})
        for mark, count in sweep_orphans(connection)
    ]


def _item(lease: StaleLease) -> Json:
    return {
        "run_id": lease.run_id,
        "node_id": lease.node_id,
        "iteration": lease.iteration,
        "attempt": lease.attempt,
        "claim_id": str(lease.claim_id),
    }


def _reclaimed(lease: StaleLease) -> Repair:
    what = f"{lease.run_id} {lease.node_id}/{lease.iteration} attempt {lease.attempt}"
    return Repair("attempt", what, {**_item(lease), "owner": lease.owner})
