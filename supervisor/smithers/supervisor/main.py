"""The supervisor process."""

from __future__ import annotations

import random
from datetime import timedelta

from smithers.observability.metrics import METRICS
from smithers.process.link import DatabaseAwayError
from smithers.process.service import Service
from smithers.process.settings import Settings
from smithers.sql.connect import Database
from smithers.supervisor.census import Census
from smithers.supervisor.duties import Repair
from smithers.supervisor.rounds import DeclaredDeadError, Policy, Rounds

_JITTER = 0.25


def run_supervisor(
    settings: Settings,
    database: Database,
    policy: Policy,
    *,
    interval: float,
    name: str | None = None,
    metrics_port: int | None = None,
) -> int:
    """Repair until SIGTERM or SIGINT; return the exit code. `interval` is in seconds.

    A process that was declared dead begins anew under a new identity. Any number may run.
    """
    while True:
        service = Service(
            "supervisor", settings, database, name=name, metrics_port=metrics_port, beats=False
        )
        # Its beat is part of its look, so its lease follows the pause between looks.
        service.lease = timedelta(seconds=max(settings.lease_seconds, 3 * interval))
        census = Census() if metrics_port is not None else None
        with service:
            died = _live(service, Rounds(policy), interval, census)
        if not died or service.stop:
            return 0


def _live(service: Service, rounds: Rounds, interval: float, census: Census | None) -> bool:
    """Work until the process is asked to stop; True when it was declared dead."""

    def step() -> float:
        try:
            with service.main.connection() as connection:
                repairs = rounds.run_once(connection, service.owner, own_lease=service.lease)
                if census is not None:
                    census.take_if_due(connection)
        except DatabaseAwayError:
            rounds.lost_sight()
            raise
        _tell(service, repairs)
        return interval * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  not a secret

    try:
        service.run(step)
    except DeclaredDeadError:
        service.expired = True
        service.log.error("process-expired", owner=service.owner)
        return True
    return False


def _tell(service: Service, repairs: list[Repair]) -> None:
    for repair in repairs:
        service.log.info("repaired", duty=repair.duty, what=repair.what, details=repair.details)
        if repair.duty == "orphan":
            METRICS.orphans.add(by=float(str(repair.details["count"])))
        elif repair.duty != "due":
            METRICS.reclaims.add(repair.duty)
