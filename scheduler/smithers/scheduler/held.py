"""Which runs this process owns, which of them a lane has, and which have been idle for too long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Final

from smithers.scheduler.advance import OwnedRun

IDLE_SECONDS: Final = 10.0


@dataclass(slots=True)
class _Holding:
    run: OwnedRun
    busy: bool
    since: float  # idle since, or to be stepped again at
    again: bool = False
    missed: bool = False  # it was dirty again while a lane had it


class Held:
    """The runs that this process owns; for one thread."""

    def __init__(self) -> None:
        self._runs: dict[str, _Holding] = {}

    def begin(self, run: OwnedRun) -> bool:
        """Note that a lane gets this run; False when one has it, or it is to wait."""
        known = self._runs.get(run.run_id)
        if known is not None and (known.busy or known.again):
            known.missed = known.missed or known.busy
            return False
        self._runs[run.run_id] = _Holding(run, busy=True, since=0.0)
        return True

    def rest(self, run: OwnedRun) -> bool:
        """The run is ours and nothing is to be decided; True when it was dirty again meanwhile."""
        missed = self._missed(run)
        self._runs[run.run_id] = _Holding(run, busy=False, since=monotonic())
        return missed

    def again(self, run: OwnedRun, delay: float) -> None:
        """The run is ours and is to be stepped again in `delay` seconds."""
        due = monotonic() + delay
        self._runs[run.run_id] = _Holding(run, busy=False, since=due, again=True)

    def drop(self, run: OwnedRun) -> bool:
        """The run isn't ours any more; True when it may have been taken again meanwhile."""
        missed = self._missed(run)
        self._runs.pop(run.run_id, None)
        return missed

    def due(self) -> list[OwnedRun]:
        """Take out the runs that are to be stepped again now."""
        now = monotonic()
        runs = [item.run for item in self._runs.values() if item.again and item.since <= now]
        for run in runs:
            del self._runs[run.run_id]
        return runs

    def idle(self) -> list[str]:
        """Return the runs that have been at rest for too long to keep them."""
        horizon = monotonic() - IDLE_SECONDS
        return [
            run_id
            for run_id, item in self._runs.items()
            if not item.busy and not item.again and item.since < horizon
        ]

    def forget(self, run_ids: Iterable[str]) -> None:
        """Drop runs that were given up."""
        for run_id in run_ids:
            self._runs.pop(run_id, None)

    def clear(self) -> list[str]:
        """Drop all runs; return their ids."""
        run_ids = list(self._runs)
        self._runs.clear()
        return run_ids

    def busy(self) -> int:
        """Return how many runs lanes have."""
        return sum(item.busy for item in self._runs.values())

    def next_look(self) -> float | None:
        """Return the seconds until `due` or `idle` has something, None when nothing is held."""
        now = monotonic()
        times = [
            item.since + (0.0 if item.again else IDLE_SECONDS)
            for item in self._runs.values()
            if not item.busy
        ]
        return max(0.0, min(times) - now) if times else None

    def __len__(self) -> int:
        return len(self._runs)

    def _missed(self, run: OwnedRun) -> bool:
        known = self._runs.get(run.run_id)
        return known is not None and known.missed
