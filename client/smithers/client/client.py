"""Smithers from a program: start runs, find them again, list them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from smithers.client.connections import Connections
from smithers.client.engines import Engines
from smithers.client.run import Run
from smithers.client.values import JsonInput, as_json
from smithers.operations.admission import admit, parse_target
from smithers.operations.errors import INPUT_NOT_JSON
from smithers.operations.glance import glance
from smithers.operations.idempotency import check_key
from smithers.operations.ids import check_run_id
from smithers.operations.looking import list_runs
from smithers.operations.results import RunSummary
from smithers.operations.starting import start_run
from smithers.process.settings import load_settings
from smithers.workflow.states import RunStatus as RunState

"""How many times as many runs are looked through when too few of a page were of the state."""


class Client:
    """One Smithers database, for all threads of a program.

    `database_url` and `home` are found as the command line finds them when they are not given.
    Nothing is connected before the first call, and a client may be made before a fork.

    Who runs the work? A fleet that serves the database; or a detached engine, a process that this
    client starts when it has made a run runnable and that ends when nothing is to be done:
    `engine=True` always, False never, None (the default) for an embedded database only.

    `connect_timeout` is how many seconds a call waits for a database that doesn't answer, or for
    one of the `max_connections`. Raises SettingsError.
    """

    def __init__(
        self,
        *,
        database_url: str | None = None,
        home: str | Path | None = None,
        engine: bool | None = None,
        max_connections: int = 8,
        connect_timeout: float = 10.0,
    ) -> None:
        flags = {"database_url": database_url, "home": None if home is None else str(home)}
        self._settings = load_settings(flags)
        self._connections = Connections(
            self._settings, limit=max_connections, patience=connect_timeout
        )
        self._engines = Engines(self._connections, wanted=engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back; later calls raise ClientError (CLIENT_CLOSED). Twice is fine.

        Runs and engines go on.
        """
        self._connections.close()

    def start(
        self,
        file: str | Path,
        input: JsonInput = None,  # noqa: A002  # what it is called everywhere else
        *,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        max_concurrency: int | None = None,
        engine: bool | None = None,
    ) -> Run:
        """Start a run of the workflow in `FILE` or `FILE:name`; JSON or a pydantic model goes in.

        The file is loaded in a child process, so this takes as long as its imports. The same
        `idempotency_key` (one database's, for ever) gives the run that it started first; without
        one a call whose outcome got lost can't be repeated safely. `max_concurrency` bounds the
        tasks of the run at a time, `engine` is the client's for this once.

        Raises BundleError and RenderError (the file, the input: see `operations.admission`),
        OperationError (INPUT_NOT_JSON, RUN_ID_INVALID, MAX_CONCURRENCY_INVALID,
        IDEMPOTENCY_KEY_INVALID, IDEMPOTENCY_KEY_REUSED: it was another workflow, input, run id or
        bound; ENGINE_FAILED: the run is there), Refused (RUN_EXISTS), BadValue,
        DatabaseUnavailable.
        """
        if run_id is not None:
            check_run_id(run_id)
        key = uuid4().hex if idempotency_key is None else check_key(idempotency_key)
        document = as_json(
            {} if input is None else input, what="the input", code=INPUT_NOT_JSON, by_alias=True
        )
        candidate = admit(self._settings, parse_target(str(file)), document)

        admitted = self._connections.repeat(
            lambda opened: start_run(
                opened.connection,
                candidate,
                run_id=run_id,
                max_concurrency=max_concurrency,
                request_id=key,
            )
        )
        self._engines.lend(admitted.run_id, wanted=engine)
        return self._handle(admitted.run_id, created=admitted.created)

    def run(self, run_id: str) -> Run:
        """Give a handle on a run that is there. Raises UnknownRun, DatabaseUnavailable."""
        self._connections.repeat(lambda o: glance(o.connection, run_id))
        return self._handle(run_id, created=False)

    def runs(
        self, *, status: RunState | Collection[RunState] | None = None, limit: int | None = 100
    ) -> list[RunSummary]:
        """List runs, newest first: those of a state or of several, or all; None is no limit.

        Raises DatabaseUnavailable.
        """
        wanted: frozenset[RunState] | None = None
        if status is not None:
            states = [status] if isinstance(status, RunState) else status
            wanted = frozenset(map(RunState, states))
        return self._connections.repeat(
            lambda o: list_runs(o.connection, ended=True, statuses=wanted, limit=limit)
        )

    def _handle(self, run_id: str, *, created: bool) -> Run:
        return Run(run_id, self._connections, self._engines, created=created)
