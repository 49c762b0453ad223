"""The worker process: claim tasks, run them in child processes, write what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psycopg

from smithers.process.link import DatabaseAwayError
from smithers.process.linux import become_subreaper
from smithers.process.reaper import REAPER
from smithers.process.service import Service
from smithers.process.settings import Settings
from smithers.process.sweeping import sweep_orphans
from smithers.sql.connect import Database
from smithers.sql.notify import READY
from smithers.worker.loop import Worker
from smithers.worker.source import DatabaseSource, Source

GRACE_SECONDS: Final = 30.0


def run_worker(
    settings: Settings,
    database: Database,
    *,
    slots: int = 4,
    queues: Sequence[str] = ("default",),
    name: str | None = None,
    metrics_port: int | None = None,
    grace: float = GRACE_SECONDS,
) -> int:
    """Run a worker until SIGTERM or SIGINT; returns the exit code, 0.

    `grace` seconds are what running bodies get to finish after the signal; what isn't finished
    then is given back, not failed. A second signal doesn't wait.
    """
    become_subreaper()
    with Service(
        "worker",
        settings,
        database,
        name=name,
        queues=queues,
        channels=[READY],
        metrics_port=metrics_port,
        beats=False,
    ) as service:
        sweep_once(service)
        serve(service, DatabaseSource(service, queues), slots=slots, grace=grace)
    return 0


def serve(service: Service, source: Source, *, slots: int, grace: float) -> None:
    """Run a worker on a service that has begun, until it is asked to stop; then drain."""
    worker = Worker(service, source, slots=slots)
    worker.start()

    def step() -> float:
        REAPER.reap_strangers()
        return worker.step()

    try:
        service.run(step)
    finally:
        worker.drain(grace)


def sweep_once(service: Service) -> None:
    """Kill what workers that died on this host have left; skipped while the database is away."""
    try:
        with service.main.connection() as connection:
            swept = sweep_orphans(connection)
    except (DatabaseAwayError, psycopg.Error):
        return
    for mark, count in swept:
        service.log.warning("orphans-killed", mark=mark.value, count=count)
