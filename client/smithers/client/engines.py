"""Who goes on with a run that a client has started or woken, where no fleet does."""

from __future__ import annotations

import threading

from smithers.client.connections import Connections
from smithers.client.forking import renew_after_fork
from smithers.operations.launching import wake


class Engines:
    """Starts detached engines, one at a time. `wanted` None means: for an embedded database."""

    def __init__(self, connections: Connections, *, wanted: bool | None) -> None:
        self._connections = connections
        self._wanted = wanted
        self._lock = threading.Lock()
        renew_after_fork(self)

    def begin_anew(self) -> None:
        """Free the lock in a new process."""
        self._lock = threading.Lock()

    def lend(self, run_id: str, *, wanted: bool | None = None) -> None:
        """Start an engine for a runnable run unless one is there; `wanted` is for this once.

        Raises OperationError (ENGINE_FAILED), DatabaseUnavailable.
        """
        choice = self._wanted if wanted is None else wanted
        if choice is None:
            choice = self._connections.settings.database_url is None
        if choice:
            # One thread at a time: of the engines of many threads all but one would end at once.
            # Those that wait for their turn hold no connection.
            with self._lock:
                self._connections.repeat(lambda opened: wake(opened, run_id, anywhere=True))
