"""The worker process: claim tasks, run them in child processes, write what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psycopg

from smithers.process.link import DatabaseAwayError
from smithers.process.linux import become_subreaper
from smithers.process.service import Service
from smithers.process.settings import Settings
from smithers.process.sweeping import sweep_orphans
from smithers.sql.connect import Database
from smithers.sql.notify import READY
from smithers.worker.executor import CHILDREN
from smithers.worker.loop import Worker
from smithers.worker.source import DatabaseSource

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
    service = Service(
        "worker",
        settings,
        database,
        name=name,
        queues=queues,
        channels=[READY],
        metrics_port=metrics_port,
        beats=False,
        children=CHILDREN,
    )
    worker = Worker(service, DatabaseSource(service, queues), slots=slots)
    service.on_notify = worker.look_soon
    with service:
        sweep_once(service)
        worker.start()
        try:
            service.run(worker.step)
        finally:
            worker.drain(grace)
    return 0


def sweep_once(service: Service) -> None:
    """Kill what workers that died on this host have left; skipped while the database is away."""
    try:
        with service.main.connection() as connection:
            swept = sweep_orphans(connection)
    except (DatabaseAwayError, psycopg.Error):
        return
    for mark, count in swept:
        service.log.warning("orphans-killed", mark=mark.value, count=count)
