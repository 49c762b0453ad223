"""The gauges of a whole database, for the supervisors that are asked for metrics."""

from __future__ import annotations

from time import monotonic
from typing import Final

from smithers.observability.metrics import METRICS
from smithers.sql.calls import Connection
from smithers.sql.reads import read_census

EVERY_SECONDS: Final = 15.0


class Census:
    """Counts queues and runs now and then: a scrape itself asks the database nothing."""

    def __init__(self) -> None:
        self._due_at = 0.0

    def take_if_due(self, connection: Connection) -> None:
        """Set the gauges if they are older than `EVERY_SECONDS`. Raises psycopg.Error."""
        if monotonic() < self._due_at:
            return
        found = read_census(connection)
        queues = found["queues"]
        METRICS.queue_depth.replace({(q["queue"],): float(q["depth"]) for q in queues})
        METRICS.queue_age.replace({(q["queue"],): float(q["oldest"]) for q in queues})
        METRICS.runs.replace({(status,): float(n) for status, n in found["runs"].items()})
        self._due_at = monotonic() + EVERY_SECONDS
