"""A lane: one thread with one connection and one renderer child, for runs of one code version.

What hangs, crashes or leaks in a lane is the render of one run; it costs that run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smithers.bundle.store import fetch
from smithers.bundle.unpack import ensure
from smithers.observability.logs import Log
from smithers.observability.metrics import METRICS
from smithers.process.child import SpawnRefusedError
from smithers.process.link import Link
from smithers.scheduler.advance import OwnedRun, Step, advance
from smithers.scheduler.memory import RunRenderer
from smithers.scheduler.renderer import Renderer, RenderSettings, Spawn
from smithers.scheduler.reports import MAX_TRIES, STEP_REFUSED, Outcome, Remedy, Report, remedy
from smithers.scheduler.shapes import Shapes
from smithers.scheduler.waiting import Waiting
from smithers.sql.calls import Connection
from smithers.sql.errors import Fenced
from smithers.sql.scheduler import fail_run
from smithers.workflow.errors import SmithersError

_STEPS_IN_A_ROW: Final = 16  # then others of the version get their turn


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneTools:
    """What a lane gets from its scheduler; all of it is safe for any thread."""

    link: Callable[[], Link]
    spawn: Spawn
    report: Callable[[Report], None]
    render_settings: Callable[[], RenderSettings]
    home: Path
    shapes: Shapes
    log: Log


class Lane:
    """Takes runs from a queue until it is told to end."""

    def __init__(self, source_hash: str, waiting: Waiting, tools: LaneTools) -> None:
        self.source_hash = source_hash
        self.busy_since: float | None = None
        self.idle_since = time.monotonic()
        self._waiting = waiting
        self._tools = tools
        self._link = tools.link()
        self._log = tools.log
        self._renderer: RunRenderer | None = None
        self._tries: dict[str, int] = {}
        name = f"lane-{source_hash[:8]}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to take runs."""
        self._thread.start()

    def alive(self) -> bool:
        """Whether the thread hasn't ended."""
        return self._thread.is_alive()

    def abort(self) -> None:
        """Make a render that is under way fail now; for a process that ends."""
        if self._renderer is not None:
            self._renderer.abort()

    def join(self, timeout: float | None) -> bool:
        """Wait for the thread's end; True when it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while (run := self._waiting.take()) is not None:
                self.busy_since = time.monotonic()
                report = Report(run, Outcome.AGAIN, tries=MAX_TRIES)  # if this thread dies of it
                try:
                    report = self._do(run)
                finally:
                    self._tools.report(report)
                self.busy_since, self.idle_since = None, time.monotonic()
        finally:
            if self._renderer is not None:
                self._renderer.close()
            self._link.close()

    def _do(self, run: OwnedRun) -> Report:
        try:
            step = self._steps(run)
        except Exception as error:  # noqa: BLE001  sorted by `remedy`; nothing may end the lane
            return self._after(run, error)
        self._tries.pop(run.run_id, None)
        if not step.owned:
            self._forget(run)
            return Report(run, Outcome.GONE)
        return Report(run, Outcome.AGAIN if step.dirty else Outcome.OURS)

    def _steps(self, run: OwnedRun) -> Step:
        step = self._step(run)
        for _ in range(_STEPS_IN_A_ROW - 1):
            if not (step.owned and step.dirty):
                break
            step = self._step(run)
        return step

    def _step(self, run: OwnedRun) -> Step:
        with self._link.connection() as connection:
            renderer = self._ready_renderer(connection)
            step = advance(connection, run, renderer, self._tools.shapes)
        if step.frame_no is not None:
            renderer.committed(run.run_id, step.frame_no)
        return step

    def _ready_renderer(self, connection: Connection) -> RunRenderer:
        if self._renderer is None:
            home = self._tools.home
            folder = ensure(lambda name: fetch(connection, name), home, self.source_hash)
            settings = self._tools.render_settings()
            self._renderer = RunRenderer(Renderer(self._tools.spawn, folder, settings))
        return self._renderer

    def _after(self, run: OwnedRun, error: Exception) -> Report:
        self._forget(run)
        what = remedy(error)
        tries = self._tries[run.run_id] = self._tries.get(run.run_id, 0) + 1
        if what is Remedy.DROP or isinstance(error, SpawnRefusedError):
            if isinstance(error, Fenced):
                METRICS.fenced.add()
            self._log.info("run-dropped", run_id=run.run_id, reason=str(error))
            self._tries.pop(run.run_id, None)
            return Report(run, Outcome.GONE)
        if what is Remedy.FAIL:
            assert isinstance(error, SmithersError)
            return self._fail(run, error, tries)
        if what is Remedy.RETRY_SOME and tries >= MAX_TRIES:
            self._log.error("step-refused", run_id=run.run_id, error=error)
            return self._fail(run, _refused(error), tries)
        self._log.warning("step-failed", run_id=run.run_id, tries=tries, reason=str(error))
        return Report(run, Outcome.AGAIN, tries=tries)

    def _fail(self, run: OwnedRun, error: SmithersError, tries: int) -> Report:
        try:
            with self._link.connection() as connection:
                fail_run(connection, run.token(), error.to_json())
        except Fenced:
            self._log.info("run-dropped", run_id=run.run_id, reason="fenced")
        except Exception as failure:  # noqa: BLE001  whatever it is, the run is still ours
            self._log.warning("fail-not-recorded", run_id=run.run_id, error=str(failure))
            return Report(run, Outcome.AGAIN, tries=tries)
        else:
            self._log.info("run-failed", run_id=run.run_id, code=error.code, message=error.message)
        self._tries.pop(run.run_id, None)
        return Report(run, Outcome.GONE)

    def _forget(self, run: OwnedRun) -> None:
        if self._renderer is not None:
            self._renderer.forget(run.run_id)


def _refused(error: Exception) -> SmithersError:
    kind = type(error).__name__
    return SmithersError(
        STEP_REFUSED,
        f"the run can't be advanced: {str(error).strip() or kind}",
        details={"type": kind, "tries": MAX_TRIES},
        hint="the scheduler's log has the traceback; smithers up --resume tries again",
    )
