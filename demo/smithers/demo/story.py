"""The demo from its first line to its last."""

from __future__ import annotations

import fcntl
import shlex
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Final

from smithers.demo.audience import Audience
from smithers.demo.decision import Decider
from smithers.demo.engine import Engine
from smithers.demo.errors import DEMO_FAILED, DEMO_NOT_ALONE, DemoError
from smithers.demo.figures import Figures, count, disk_usage
from smithers.demo.stage import Stage, set_stage
from smithers.demo.strikes import STRIKES, Strike, kill, victims
from smithers.operations.looking import status
from smithers.operations.results import RunStatus
from smithers.operations.session import session
from smithers.operations.verifying import invariants, verify
from smithers.process.settings import Settings
from smithers.sql import reads
from smithers.sql.embedded import server_status
from smithers.workflow.states import ENDED_RUNS
from smithers.workflow.states import RunStatus as Status

PAUSE_SECONDS: Final = 1.2
_LOOK: Final = 0.05
_PATIENCE: Final = 60.0
_DONE, _PARKED = 0, 3


@dataclass
class Story:
    """One demo. Main thread only."""

    settings: Settings
    audience: Audience
    stage: Stage
    run_id: str
    began: datetime
    hit: list[list[int]] = field(default_factory=list[list[int]])

    def play(self) -> Figures:
        """Run, kill, come back, let a person decide, count. Raises DemoError, SmithersError."""
        self._introduce()
        engine = self._begin()
        try:
            for strike in STRIKES:
                engine = self._strike(strike, engine)
            self._expect(engine, {_PARKED, _DONE})
            Decider(self.settings, self.audience, self.run_id).decide()
            engine = self._resume()
            self._expect(engine, {_DONE, 1})
        finally:
            engine.stop()
        return self._count()

    def _introduce(self) -> None:
        say, stage = self.audience.tell, self.stage
        what = f"a scratch copy of {stage.origin}" if stage.origin else "a sample project"
        say(f"Smithers inspects {what} in parallel, an agent repairs a planted defect,")
        say("a person approves, a report is written. Meanwhile its processes are killed.")
        say("")

    def _begin(self) -> Engine:
        stage = self.stage
        document = {
            "repo": str(stage.repository),
            "report": str(stage.report),
            "scratch": str(stage.scratch),
            "pause_seconds": PAUSE_SECONDS,
        }
        self._command("up", str(stage.workflow), "--run-id", self.run_id, "--input", "…")
        return Engine.begin(
            self.settings, stage.workflow, self.run_id, document, self.audience.overhear
        )

    def _resume(self) -> Engine:
        workflow = self.stage.workflow
        self._command("up", str(workflow), "--run-id", self.run_id, "--resume")
        return Engine.resume(self.settings, workflow, self.run_id, self.audience.overhear)

    def _command(self, *words: str) -> None:
        self.audience.tell(f"$ smithers {shlex.join(words)}", style="bold")

    def _strike(self, strike: Strike, engine: Engine) -> Engine:
        """Wait for the moment, say it, do it. Gives the engine that goes on."""
        seen = self._wait(strike.moment, engine)
        if seen is None:
            return engine
        hit = victims(strike, seen, engine.pid)
        pids = [int(process["pid"]) for process in hit]
        flying = sum(node["state"] == "in-progress" for node in seen.nodes)
        done = sum(node["state"] == "finished" for node in seen.nodes)
        postgres = self._postgres() if strike.everything else None
        also = [f"smithers up {engine.pid}"] if strike.everything else []
        also += [f"postgres {postgres}"] if postgres else []
        names = ", ".join([*(f"{each['kind']} {each['pid']}" for each in hit), *also])
        self.audience.tell(
            f"{len(self.hit) + 1}. Now SIGKILL to {strike.words} ({names}): "
            f"{done} of its nodes are done, {flying} in flight.",
            style="bold red",
        )
        self.hit.append([int(process["id"]) for process in hit])
        if not strike.everything:
            kill(pids)
            return engine
        engine.kill()
        kill([*pids, *([postgres] if postgres else [])])
        self.audience.tell("Nothing lives. The run is rows. Come back:", style="bold")
        return self._resume()

    def _postgres(self) -> int | None:
        if self.settings.database_url is not None:
            return None
        return server_status(self.settings.home).pid

    def _wait(self, moment: Callable[[RunStatus], bool], engine: Engine) -> RunStatus | None:
        """Look until the moment has come; None when the run has ended before it."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            seen = self._look()
            if seen is not None and Status(seen.status) in ENDED_RUNS:
                return None
            if seen is not None and moment(seen):
                return seen
            if engine.code() is not None:
                self._expect(engine, {_PARKED})
                return None
            time.sleep(_LOOK)
        raise DemoError(
            DEMO_FAILED,
            f"run {self.run_id} got nowhere within {_PATIENCE:.0f} s",
            hint=f"smithers why {self.run_id}",
        )

    def _look(self) -> RunStatus | None:
        with session(self.settings, purpose="demo") as opened:
            if not reads.run_exists(opened.connection, self.run_id):
                return None
            return status(opened.connection, self.run_id)

    def _expect(self, engine: Engine, codes: set[int]) -> None:
        code = engine.wait()
        if code not in codes:
            raise DemoError(
                DEMO_FAILED,
                f"smithers up ended with exit code {code}",
                details={"run_id": self.run_id, "exit_code": code},
                hint=f"smithers why {self.run_id}",
            )

    def _count(self) -> Figures:
        with session(self.settings, purpose="demo") as opened:
            seen = status(opened.connection, self.run_id)
            counted = count(opened.connection, self.run_id, self.hit)
            violations = verify(opened.connection, run_id=self.run_id)
        first = counted.first_start or datetime.now(UTC)
        return Figures(
            run_id=self.run_id,
            status=seen.status,
            killed=counted.killed,
            steps=counted.steps,
            repeated=counted.repeated,
            interrupted=counted.interrupted,
            seconds_to_first_body=round((first - self.began).total_seconds(), 2),
            seconds=round((datetime.now(UTC) - self.began).total_seconds(), 1),
            disk_bytes=disk_usage(self.settings.home),
            invariants=len(invariants()),
            violations=len(violations),
            report=str(self.stage.report),
        )


def tell(settings: Settings, wanted: Path | None, audience: Audience) -> Figures:
    """Play the demo in the project's home. Raises DemoError, SmithersError."""
    began = datetime.now(UTC)
    _refuse_company(settings)
    run_id = f"demo-{token_hex(3)}"
    with _alone(settings.home / "demo"):
        stage = set_stage(settings.home / "demo" / run_id, wanted)
        return Story(settings, audience, stage, run_id, began).play()


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Raise DemoError (DEMO_NOT_ALONE) while another demo of this home is played."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DemoError(
                DEMO_NOT_ALONE, "another demo is played in this project", hint="wait for its end"
            ) from error
        yield


def _refuse_company(settings: Settings) -> None:
    """A demo kills the processes of its database: they must be its own."""
    with session(settings, purpose="demo") as opened:
        others = reads.read_processes(opened.connection)
    if others:
        names = ", ".join(f"{each['kind']} {each['pid']} on {each['host']}" for each in others)
        raise DemoError(
            DEMO_NOT_ALONE,
            f"processes serve this database already, which the demo would kill: {names}",
            details={"processes": others},
            hint="stop them, or show it elsewhere: SMITHERS_HOME=/tmp/demo smithers demo",
        )
