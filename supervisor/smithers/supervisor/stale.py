"""When an expired lease may be believed: after two looks with the database in sight between them.

A lease expires because its worker is gone, or because nobody could reach the database. The second
kind ends by itself: workers beat before they do anything else. So a lease counts as lost only if
it was expired at two looks, at least two heartbeats apart, and no query failed in between; and
after an outage nothing is believed for one full lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final
from uuid import UUID

from smithers.sql.rows import StaleLease

HEARTBEATS_APART: Final = 2.0

Token = tuple[str, str, int, int, UUID]


class StaleWatch:
    """Remembers which leases were seen expired, and since when."""

    def __init__(
        self, *, heartbeat: float, lease: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._heartbeat = heartbeat
        self._lease = lease
        self._clock = clock
        self._seen: dict[Token, float] = {}
        self._blind_until = 0.0

    def lost_sight(self) -> None:
        """A query failed: forget what was seen, and believe nothing for one lease."""
        self._seen.clear()
        self._blind_until = self._clock() + self._lease

    def sees(self) -> bool:
        """Whether the last outage is a full lease ago."""
        return self._clock() >= self._blind_until

    def look(self, stale: Iterable[StaleLease]) -> list[StaleLease]:
        """Take what is expired now; return those that have been so for long enough."""
        now = self._clock()
        stale = list(stale)
        self._seen = {token(lease): self._seen.get(token(lease), now) for lease in stale}
        if not self.sees():
            return []
        apart = HEARTBEATS_APART * self._heartbeat
        return [lease for lease in stale if now - self._seen[token(lease)] >= apart]


def token(lease: StaleLease) -> Token:
    """Return what a lease is known by."""
    return (lease.run_id, lease.node_id, lease.iteration, lease.attempt, lease.claim_id)
