"""The handle of one run."""

from __future__ import annotations

from smithers.client.connections import Connections
from smithers.client.deciding import Deciding
from smithers.client.engines import Engines
from smithers.client.looking import Looking


class Run(Looking, Deciding):
    """A run, by its `id`: look at it, wait for it, decide about it.

    `created` says whether the call that gave this handle has created the run: false for one that
    was there, also for one that an idempotency key had started before.
    """

    def __init__(
        self, run_id: str, connections: Connections, engines: Engines, *, created: bool
    ) -> None:
        super().__init__(run_id, connections, engines)
        self.created = created

    def __repr__(self) -> str:
        return f"Run({self.id!r})"
