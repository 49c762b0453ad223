"""The scheduler process."""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from smithers.process.environment import executor_mark
from smithers.process.link import DatabaseAwayError
from smithers.process.service import Service
from smithers.process.settings import Settings
from smithers.scheduler.lane import Lane, LaneTools
from smithers.scheduler.lanes import Lanes
from smithers.scheduler.loop import Loop
from smithers.scheduler.renderer import CHILDREN, RenderSettings
from smithers.scheduler.reports import Report
from smithers.scheduler.shapes import Shapes
from smithers.scheduler.waiting import Waiting
from smithers.sql.connect import Database
from smithers.sql.notify import DIRTY
from smithers.sql.scheduler import give_up_runs

_SETTLE_SECONDS: Final = 2.0
_GRACE_FACTOR: Final = 1.5  # of the longest render


def run_scheduler(
    settings: Settings,
    database: Database,
    *,
    name: str | None = None,
    metrics_port: int | None = None,
) -> int:
    """Advance runs until SIGTERM or SIGINT, then hand them back; return the exit code.

    A process that was declared dead (stopped for longer than its lease) begins anew under a new
    identity. Main thread only: it spawns the renderers.
    """
    while True:
        heard = Heard()
        service = Service(
            "scheduler",
            settings,
            database,
            name=name,
            channels=(DIRTY,),
            on_notify=heard.set,
            metrics_port=metrics_port,
            children=CHILDREN,
        )
        with service:
            _Life(service, heard).live()
        if not service.expired or service.stop.hurried:
            return 0


@dataclass(slots=True)
class Heard:
    """Whether a notification has come since the last look; set by the thread that listens."""

    yes: bool = False

    def set(self) -> None:
        """A notification came."""
        self.yes = True

    def take(self) -> bool:
        """Return whether one came, and forget it."""
        yes, self.yes = self.yes, False
        return yes


class _Life:
    """One scheduler from its registration to its end."""

    def __init__(self, service: Service, heard: Heard) -> None:
        self._service = service
        self._heard = heard
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._tools = LaneTools(
            link=lambda: service.link("lane"),
            spawn=service.spawner.spawn,
            report=self._report,
            render_settings=self._render_settings,
            home=service.settings.home,
            shapes=Shapes(),
            log=service.log,
        )
        self._lanes = Lanes(self._open_lane, service.log)
        self._loop = Loop(
            service.owner,
            self._lanes,
            self._reports,
            resume_limit=service.settings.resume_limit,
        )

    def live(self) -> None:
        """Work until the process is asked to stop, then drain."""
        try:
            self._service.run(self._step)
        finally:
            self._drain()

    def _step(self) -> float:
        if self._heard.take():
            self._loop.notified()
        try:
            with self._service.main.connection() as connection:
                return self._loop.round(connection, listening=self._service.listening)
        except DatabaseAwayError:
            self._loop.was_away(min(_SETTLE_SECONDS, self._service.heartbeat.total_seconds()))
            raise

    def _drain(self) -> None:
        service = self._service
        service.log.info("draining", owner=service.owner)
        deadline = time.monotonic() + service.settings.render_timeout_seconds * _GRACE_FACTOR

        def wait() -> bool:
            if service.stop.hurried or service.expired or time.monotonic() > deadline:
                return False
            service.wake.wait(0.2)
            service.spawner.serve()
            return True

        run_ids = self._loop.drain(wait)
        self._lanes.close(seconds=0.5)
        if not run_ids or service.expired:
            return
        try:
            with service.main.connection() as connection:
                give_up_runs(connection, service.owner, run_ids)
        except DatabaseAwayError:
            service.log.warning("runs-not-handed-back", runs=len(run_ids))

    def _open_lane(self, source_hash: str, waiting: Waiting) -> Lane:
        return Lane(source_hash, waiting, self._tools)

    def _report(self, report: Report) -> None:
        self._reports.put(report)
        self._service.wake.set()

    def _render_settings(self) -> RenderSettings:
        service = self._service
        mark = executor_mark(service.instance, service.owner, uuid4())
        return RenderSettings.of(service.settings, mark=mark)
