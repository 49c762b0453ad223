"""What both halves of a run's handle stand on."""

from __future__ import annotations

from smithers.client.connections import Connections
from smithers.client.engines import Engines


class Handle:
    """A run's id, and the means to ask about it. Any thread may use it."""

    def __init__(self, run_id: str, connections: Connections, engines: Engines) -> None:
        self.id = run_id
        self._connections = connections
        self._engines = engines
