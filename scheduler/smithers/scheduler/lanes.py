"""All lanes of a scheduler: which code versions have one, when a version gets a second, who ends.

One render that hangs holds up its lane until its time is over. Runs of the same version that wait
behind it for longer than a moment get a spare lane, so that it costs nobody else more than that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from smithers.observability.logs import Log
from smithers.scheduler.advance import OwnedRun
from smithers.scheduler.lane import Lane
from smithers.scheduler.waiting import Waiting

MAX_LANES: Final = 16
MAX_LANES_OF_VERSION: Final = 4
SPARE_AFTER: Final = 0.5  # seconds of waiting
SPARE_LIMIT: Final = 12  # beyond it lanes are kept for versions that have none
IDLE_SECONDS: Final = 60.0


@dataclass
class _Version:
    waiting: Waiting = field(default_factory=Waiting)
    lanes: list[Lane] = field(default_factory=list)

    def idle_seconds(self, now: float) -> float:
        """Return how long nothing has been running or waiting; 0 while something is."""
        if len(self.waiting) or any(lane.busy_since is not None for lane in self.lanes):
            return 0.0
        return min((now - lane.idle_since for lane in self.lanes), default=now)


class Lanes:
    """Hands runs to lanes, which it opens and ends as they are needed. For one thread only."""

    def __init__(self, open_lane: Callable[[str, Waiting], Lane], log: Log) -> None:
        self._open_lane = open_lane
        self._log = log
        self._versions: dict[str, _Version] = {}
        self._ending: list[Lane] = []

    def dispatch(self, run: OwnedRun) -> None:
        """Queue a run for a lane of its version."""
        self._versions.setdefault(run.source_hash, _Version()).waiting.put(run)

    def tend(self) -> None:
        """Open lanes for runs that wait; end those that nobody has needed for a while."""
        now = monotonic()
        for version in self._versions.values():
            for lane in [lane for lane in version.lanes if not lane.alive()]:
                self._log.error("lane-died", source_hash=lane.source_hash)
                version.lanes.remove(lane)
        wanting = [item for item in self._versions.items() if self._wants_lane(item[1])]
        for source_hash, version in sorted(
            wanting, key=lambda item: (len(item[1].lanes), -item[1].waiting.oldest_wait())
        ):
            if self._room_for(version, now):
                lane = self._open_lane(source_hash, version.waiting)
                version.lanes.append(lane)
                lane.start()
        for source_hash, version in list(self._versions.items()):
            if version.idle_seconds(now) > IDLE_SECONDS:
                self._close(source_hash)
        self._ending = [lane for lane in self._ending if lane.alive()]

    def next_look(self) -> float | None:
        """Return the seconds until `tend` may have something to do, None when nothing waits."""
        waits = [v.waiting.oldest_wait() for v in self._versions.values() if len(v.waiting)]
        if not waits:
            return None
        return max(0.05, SPARE_AFTER - max(waits))

    def clear(self) -> list[OwnedRun]:
        """Take back the runs that no lane has begun."""
        return [run for version in self._versions.values() for run in version.waiting.clear()]

    def close(self, *, seconds: float) -> None:
        """End all lanes; those that are busy for longer than `seconds` lose their renderer."""
        for source_hash in list(self._versions):
            self._close(source_hash)
        deadline = monotonic() + seconds
        for lane in self._ending:
            if not lane.join(max(0.0, deadline - monotonic())):
                lane.abort()
                lane.join(1.0)

    def count(self) -> int:
        """Return how many lanes there are."""
        return sum(len(version.lanes) for version in self._versions.values())

    def _wants_lane(self, version: _Version) -> bool:
        if not len(version.waiting) or len(version.lanes) >= MAX_LANES_OF_VERSION:
            return False
        return not version.lanes or version.waiting.oldest_wait() > SPARE_AFTER

    def _room_for(self, version: _Version, now: float) -> bool:
        if self.count() < (SPARE_LIMIT if version.lanes else MAX_LANES):
            return True
        return not version.lanes and self._close_longest_idle(now)

    def _close_longest_idle(self, now: float) -> bool:
        idle = {name: version.idle_seconds(now) for name, version in self._versions.items()}
        name = max(idle, key=lambda key: idle[key], default="")
        if not name or idle[name] <= 0:
            return False
        self._close(name)
        return True

    def _close(self, source_hash: str) -> None:
        version = self._versions.pop(source_hash)
        for lane in version.lanes:
            version.waiting.close_one()
            self._ending.append(lane)
