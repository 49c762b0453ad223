"""The common life of a process: register, beat, listen, do one thing after another, end.

    with Service("scheduler", settings, database, channels=("smithers_dirty",)) as service:
        service.run(step)          # step() does one thing and returns how long to sleep

The first SIGTERM or SIGINT makes `run` return, so that the caller can drain; `stop.hurried`
says that a second one came. Whoever needs a child asks `spawner`, from any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Self

import psycopg

from smithers.observability.http import Health, MetricsServer
from smithers.observability.logs import Log
from smithers.observability.metrics import METRICS
from smithers.process.beat import Beat
from smithers.process.channel import readable
from smithers.process.child import Spawner
from smithers.process.environment import child_environment
from smithers.process.identity import Identity, new_identity
from smithers.process.link import DatabaseAwayError, DatabaseState, Link
from smithers.process.listener import Listener
from smithers.process.nursery import Nursery
from smithers.process.output import Pump
from smithers.process.settings import Settings
from smithers.process.signals import stop_on_signals
from smithers.process.version import version
from smithers.process.wake import Stop, Wake
from smithers.sql.connect import Database
from smithers.sql.errors import is_transient
from smithers.sql.notify import Channel
from smithers.sql.processes import instance_id, register_process, stop_process
from smithers.workflow.errors import SmithersError

_GOODBYE_SECONDS = 2.0
_LAST_STATEMENT_SECONDS = 3.0
"""How long a statement may take, once the process was asked to end, before it is cut."""


class Service:
    """A registered process. Enter it in the main thread; attributes are set after that."""

    def __init__(
        self,
        kind: str,
        settings: Settings,
        database: Database,
        *,
        name: str | None = None,
        queues: Sequence[str] | None = None,
        channels: Sequence[Channel] = (),
        on_notify: Callable[[], None] | None = None,
        metrics_port: int | None = None,
        beats: bool = True,
        signals: bool = True,
        children: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self.name = name
        self.queues = queues
        self.settings = settings
        self.database = database
        self.lease = timedelta(seconds=settings.lease_seconds)
        self.heartbeat = timedelta(seconds=settings.heartbeat_seconds)
        self.identity: Identity = new_identity(kind)
        self.owner = 0
        self.instance = ""
        self.expired = False
        self.log = Log().bind(kind=kind, pid=self.identity.pid, **({"name": name} if name else {}))
        self.wake = Wake()
        self.stop = Stop(self.wake)
        self.state = DatabaseState(self.log)
        self.pump = Pump()
        self._children = children
        self.spawner = Spawner(
            self.wake.set,
            pump=self.pump,
            launch=self._launch_nursery if children else None,
            nursery=Nursery.inherited() if children else None,
        )
        self._channels = channels
        self.on_notify = on_notify
        self._metrics_port = metrics_port
        self._beats = beats
        self._signals = signals
        self._main = self.link("main")
        self._listener: Listener | None = None
        self._beat: Beat | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self._signals:
                stack.enter_context(stop_on_signals(self.stop))
            if self._metrics_port is not None:
                stack.callback(self._serve_metrics(self._metrics_port).close)
            stack.callback(self.pump.close)
            stack.callback(self.spawner.close)
            self.spawner.warm()
            stack.callback(self._start_guard().request)
            self._register_patiently()
            stack.callback(self._say_goodbye)
            if self._channels:
                self._listener = Listener(self.link("listen"), self._channels, self._on_notify)
                self._listener.start()
                stack.callback(self._listener.stop)
            if self._beats and not self.stop:
                self._start_beat()
                stack.callback(self._stop_beat)
            self._stack = stack.pop_all()
        self.log.info("started", owner=self.owner, queues=self.queues)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()
        self.log.info("stopped", owner=self.owner)

    @property
    def listening(self) -> bool:
        """Whether a NOTIFY would be heard now."""
        return self._listener is not None and self._listener.live

    def link(self, purpose: str) -> Link:
        """A new link for one thread, named so that it is found in pg_stat_activity."""
        label = f"smithers {self.kind} {self.name or self.identity.pid} {purpose}"
        return Link(self.database, name=label, state=self.state)

    @property
    def main(self) -> Link:
        """The main thread's link."""
        return self._main

    def register(self, link: Link | None = None) -> int:
        """Register under a new uuid: at the start, and after being declared dead.

        Raises DatabaseAwayError.
        """
        self.identity = new_identity(self.kind)
        with (link or self._main).connection() as connection:
            self.owner = register_process(
                connection,
                kind=self.kind,
                host=self.identity.host,
                pid=self.identity.pid,
                uuid=self.identity.uuid,
                name=self.name,
                queues=self.queues,
                version=version(),
                lease=self.lease,
            )
            self.instance = instance_id(connection)
        return self.owner

    def run(self, step: Callable[[], float]) -> None:
        """Call `step` until asked to stop; it returns the seconds to sleep, cut short by `wake`.

        A step that finds the database away, or loses a deadlock, is called again after a pause.
        """
        while not self.stop:
            self.spawner.serve()
            try:
                seconds = step()
            except DatabaseAwayError:
                self.sleep(self._main.pause())
            except psycopg.Error as error:
                if not is_transient(error):
                    raise
                self.sleep(self._main.pause())
            else:
                self.wake.wait(seconds)

    def sleep(self, seconds: float) -> None:
        """Wait the whole time unless asked to stop, serving those who want a child."""
        deadline = time.monotonic() + seconds
        while not self.stop and (left := deadline - time.monotonic()) > 0:
            self.wake.wait(left)
            self.spawner.serve()

    def health(self) -> Health:
        """What /healthz says: unhealthy when declared dead; a database that is away is not our
        fault, and a restart wouldn't help.
        """
        facts = {"kind": self.kind, "owner": self.owner, "database": self.state.is_up}
        return Health(ok=not self.expired, facts={**facts, "stopping": bool(self.stop)})

    def _serve_metrics(self, port: int) -> MetricsServer:
        try:
            return MetricsServer(port, METRICS, self.health)
        except OSError as error:
            raise SmithersError(
                "PORT_UNAVAILABLE",
                f"port {port} can't be served: {error.strerror}",
                details={"port": port},
                hint="name another with --metrics-port, or 0 for any free one",
            ) from error

    def _launch_nursery(self) -> Nursery:
        settings = self.settings
        environ = child_environment(
            None, home=str(settings.home), database_url=settings.database_url
        )
        return Nursery.launch(self._children, environ)

    def _register_patiently(self) -> None:
        while not self.stop:
            try:
                self.register()
            except DatabaseAwayError:
                self.stop.wait(self._main.pause())
            else:
                return

    def _start_guard(self) -> Stop:
        """Cut the main thread's statement when it hangs and the process was asked to end: a
        database that is silent may not keep it. Returns what ends the guard.
        """
        ended = Stop()

        def guard() -> None:
            readable([self.stop.fileno(), ended.fileno()], None)
            while not ended.wait(0.5):
                since = self._main.busy_since
                if since is not None and time.monotonic() - since > _LAST_STATEMENT_SECONDS:
                    self._main.cut()

        threading.Thread(target=guard, name="guard", daemon=True).start()
        return ended

    def _start_beat(self) -> None:
        self._beat = Beat(
            self.link("beat"),
            self.owner,
            lease=self.lease,
            every=self.heartbeat,
            on_expired=self._on_expired,
        )
        self._beat.start()

    def _stop_beat(self) -> None:
        if self._beat is not None:
            self._beat.stop()

    def _on_expired(self) -> None:
        """Declared dead: nothing that this process holds is its own any more."""
        self.expired = True
        self.log.error("process-expired", owner=self.owner)
        self.stop.request()

    def _on_notify(self, _channel: str, _payload: str) -> None:
        if self.on_notify is not None:
            self.on_notify()
        self.wake.set()

    def _say_goodbye(self) -> None:
        """Best effort: without it the process is seen to be dead when its lease ends."""
        deadline = time.monotonic() + _GOODBYE_SECONDS
        while self.owner and not self.expired and time.monotonic() < deadline:
            try:
                with self._main.connection() as connection:
                    stop_process(connection, self.owner)
                break
            except (DatabaseAwayError, psycopg.Error):
                time.sleep(self._main.pause())
        self._main.close()
