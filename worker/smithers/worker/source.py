"""Where a worker's tasks come from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol
from uuid import UUID, uuid4

from smithers.process.link import DatabaseAwayError
from smithers.process.service import Service
from smithers.sql.worker import claim_tasks, claimed_by
from smithers.worker.attempt import Attempt


class Source(Protocol):
    """Gives tasks that are claimed for this worker."""

    def claim(self, *, limit: int, free: int) -> list[Attempt]:
        """Up to `limit` attempts; one that must run alone only if a slot is `free`.

        Raises DatabaseAwayError, ProcessExpired.
        """
        ...

    def forget(self) -> None:
        """What was claimed and not received is not this process's any more."""
        ...


class DatabaseSource:
    """Claims from the queues of the database, in the order given. For the main thread."""

    def __init__(self, service: Service, queues: Sequence[str]) -> None:
        self._service = service
        self._queues = queues
        self._unanswered: dict[UUID, float] = {}

    def claim(self, *, limit: int, free: int) -> list[Attempt]:
        """See `Source`. A claim whose answer was lost is asked for again first."""
        lost = self._lost_claims()
        if lost:
            return lost
        claim_id = uuid4()
        sent = self._unanswered[claim_id] = time.monotonic()
        with self._service.main.connection() as connection:
            tasks = claim_tasks(
                connection,
                self._service.owner,
                claim_id,
                queues=self._queues,
                limit=limit,
                free=free,
                lease=self._service.lease,
            )
        del self._unanswered[claim_id]
        return [Attempt(task, acknowledged_at=sent) for task in tasks]

    def forget(self) -> None:
        """See `Source`."""
        self._unanswered.clear()

    def _lost_claims(self) -> list[Attempt]:
        for claim_id, sent in list(self._unanswered.items()):
            with self._service.main.connection() as connection:
                tasks = claimed_by(connection, self._service.owner, claim_id)
            del self._unanswered[claim_id]
            if tasks:
                # Nobody has renewed these leases since they were claimed.
                return [Attempt(task, acknowledged_at=sent) for task in tasks]
        return []


__all__ = ["DatabaseAwayError", "DatabaseSource", "Source"]
