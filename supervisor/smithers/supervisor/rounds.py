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

NOBODY: Final = 0
"""No process row has this number."""
SILENCE: Final = 1 / 3
"""The part of a lease after which an answer is so late that the database counts as away."""


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


class DeclaredDeadError(Exception):
    """The supervisor's own process row has expired: it has to register anew."""


class Rounds:
    """What one supervisor remembers between its rounds."""

    def __init__(self, policy: Policy, *, clock: Callable[[], float] = monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._watch = StaleWatch(heartbeat=policy.heartbeat, lease=policy.lease, clock=clock)
        self._sweep_at = clock()

    def lost_sight(self) -> None:
        """A query failed, or hung: nothing is believed for one lease."""
        self._watch.lost_sight()

    def run_once(self, connection: Connection, owner: int, *, own_lease: timedelta) -> list[Repair]:
        """Beat, look, and repair what there is.

        `own_lease` is how long this process may be silent. Raises DeclaredDeadError, and
        psycopg.Error, after which `lost_sight` is due.
        """
        grace = timedelta(seconds=self._policy.lease)
        asked_at = self._clock()
        found = sql.beat_and_look(connection, owner, lease=own_lease, late=duties.LATE, grace=grace)
        if not found.current:
            raise DeclaredDeadError
        stale = self._stale(connection) if found.leases else []
        if self._clock() - asked_at > SILENCE * self._policy.lease:
            self.lost_sight()  # the answer came, but nobody could beat while we waited for it
        repairs = duties.fire_late(connection) if found.due else []
        lost = self._watch.look(stale)
        repairs += duties.reclaim_attempts(connection, lost, poison=self._policy.poison)
        if not self._watch.sees():
            return repairs
        if found.runs:
            repairs += duties.reclaim_runs(connection, owner)
        if found.processes:
            repairs += duties.expire_processes(connection, grace)
        if repairs or self._clock() >= self._sweep_at:
            # At the first round, when something was dead, and once a lease: reading every
            # process of the host isn't free.
            repairs += duties.kill_orphans(connection)
            self._sweep_at = self._clock() + self._policy.lease
        return repairs

    def _stale(self, connection: Connection) -> list[StaleLease]:
        stale = sql.stale_leases(connection, limit=duties.MAX_LEASES)
        return [lease for lease in stale if self._policy.wants(lease)]


def would_do(connection: Connection, policy: Policy) -> list[Repair]:
    """Return what a round would repair now if it believed every expired lease; changes nothing.

    Orphaned processes are left out: only killing them would tell how many there are.
    """
    with connection.transaction(force_rollback=True):
        stale = sql.stale_leases(connection, limit=duties.MAX_LEASES)
        wanted = [lease for lease in stale if policy.wants(lease)]
        return [
            *duties.fire_late(connection),
            *duties.reclaim_attempts(connection, wanted, poison=policy.poison),
            *duties.reclaim_runs(connection, NOBODY),
            *duties.expire_processes(connection, timedelta(seconds=policy.lease)),
        ]
