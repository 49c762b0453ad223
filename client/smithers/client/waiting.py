"""Wait for a run by looking at it: at once, then less and less often, four times a second at least.

The commit that ends a run sends no notification, and behind PgBouncer none would be heard. A look
is one small statement on a connection that is borrowed for just that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, Literal

from smithers.client.connections import Connections
from smithers.client.errors import timed_out
from smithers.operations import looking, reading
from smithers.operations.glance import Glance, glance
from smithers.operations.results import EventLine, RunStatus

_SHORTEST: Final = 0.02
_LONGEST: Final = 0.25


class _Pace:
    """Sleeps between looks, and says when time is up."""

    def __init__(self, timeout: float | None) -> None:
        self._until = None if timeout is None else time.monotonic() + timeout
        self._pause = _SHORTEST

    def sleep(self) -> bool:
        """Sleep, longer each time; false, without a sleep, when the time is up."""
        left = self._pause if self._until is None else self._until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(self._pause, left))
        self._pause = min(_LONGEST, self._pause * 2)
        return True

    def hurry(self) -> None:
        """Something has happened: look again soon."""
        self._pause = _SHORTEST


def wait(
    connections: Connections,
    run_id: str,
    *,
    until: Literal["ended", "parked"],
    timeout: float | None,
) -> RunStatus:
    """Give a run's status once it has come so far. Raises UnknownRun, WaitTimeout."""
    pace = _Pace(timeout)
    while True:
        seen = _look(connections, run_id)
        if seen.ended or (until == "parked" and seen.rests):
            found = connections.repeat(lambda o: looking.status(o.connection, run_id))
            if found.status == seen.status:  # nobody has woken it since
                return found
        if not pace.sleep():
            raise timed_out(run_id, seen.status, until, timeout or 0.0)


def follow(
    connections: Connections, run_id: str, *, since: int, timeout: float | None
) -> Iterator[EventLine]:
    """Give events until the run has ended and all are given, or the time is up."""
    pace = _Pace(timeout)
    while True:
        seen = _look(connections, run_id)
        while since < seen.last_seq:
            for event in _page(connections, run_id, since):
                yield event
                since = event.seq
            pace.hurry()
        if seen.ended or not pace.sleep():
            return


def _page(connections: Connections, run_id: str, since: int) -> list[EventLine]:
    return connections.repeat(lambda o: reading.events(o.connection, run_id, since=since))


def _look(connections: Connections, run_id: str) -> Glance:
    return connections.repeat(lambda o: glance(o.connection, run_id))
