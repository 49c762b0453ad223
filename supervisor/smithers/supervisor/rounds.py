"""One round of a supervisor: look once, then do the duties that have something to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Final

from smithers.sql import supervisor as sql
from smithers.sql.calls import Connection
from smithers.sql.rows import StaleLease
from smithers.supervisor import duties
from smithers.supervisor.duties import Repair
from smithers.supervisor.stale import StaleWatch

_SWEEPS_PER_LEASE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a supervisor is told. Seconds are floats.

    `threshold` is the age of the last heartbeat from which a lease counts as lost (at least a
    lease); `run_ids` limits the reclaim of attempts to these runs, None means all.
    """

    lease: float
    heartbeat: float
    poison: int
    threshold: float | None = None
    run_ids: frozenset[str] | None = None

    def wants(self, lease: StaleLease) -> bool:
        """Whether an expired lease is ours to look after."""
        extra = max(0.0, (self.threshold or 0.0) - self.lease)
        return lease.late_seconds >= extra and (
            self.run_ids is None or lease.run_id in self.run_ids
        )


class Rounds:
    """What one supervisor remembers between its rounds."""

    def __init__(
        self, policy: Policy, *, database: str, clock: Callable[[], float] = monotonic
    ) -> None:
        self._policy = policy
        self._database = database
        self._clock = clock
        self._watch = StaleWatch(heartbeat=policy.heartbeat, lease=policy.lease, clock=clock)
        self._swept_at = -policy.lease

    def lost_sight(self) -> None:
        """A query failed: nothing is believed for one lease."""
        self._watch.lost_sight()

    def run_once(self, connection: Connection, owner: int) -> list[Repair]:
        """Look, and repair what there is. Raises psycopg.Error, after which `lost_sight` is due."""
        grace = timedelta(seconds=self._policy.lease)
        found = sql.look_for_repairs(connection, owner, late=duties.LATE, grace=grace)
        repairs: list[Repair] = []
        if found.due:
            repairs += duties.fire_late(connection)
        repairs += duties.reclaim_attempts(
            connection,
            self._watch.look(self._stale(connection) if found.leases else []),
            poison=self._policy.poison,
        )
        if not self._watch.sees():
            return repairs
        if found.runs:
            repairs += duties.reclaim_runs(connection, owner)
        if found.processes:
            repairs += duties.expire_processes(connection, grace)
        if self._clock() - self._swept_at >= self._policy.lease / _SWEEPS_PER_LEASE:
            repairs += duties.kill_orphans(connection, self._database)
            self._swept_at = self._clock()
        return repairs

    def _stale(self, connection: Connection) -> list[StaleLease]:
        stale = sql.stale_leases(connection, limit=duties.MAX_LEASES)
        return [lease for lease in stale if self._policy.wants(lease)]


def would_do(connection: Connection, owner: int, policy: Policy) -> list[Repair]:
    """Return what a round would repair now if it believed every expired lease; changes nothing.

    Orphaned processes are left out: only killing them would tell how many there are.
    """
    with connection.transaction(force_rollback=True):
        stale = sql.stale_leases(connection, limit=duties.MAX_LEASES)
        return [
            *duties.fire_late(connection),
            *duties.reclaim_attempts(
                connection, [lease for lease in stale if policy.wants(lease)], poison=policy.poison
            ),
            *duties.reclaim_runs(connection, owner),
            *duties.expire_processes(connection, timedelta(seconds=policy.lease)),
        ]
