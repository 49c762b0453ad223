"""What a run's rows add up to: one word, and what isn't as it should be. Pure: no clock, no I/O.

ended      finished → done, or degraded (a tolerated failure, a skipped node, a loop that
           ran out of passes) · failed · cancelled · continued → done
paused     asked for, and nothing is in flight
stuck      it should move and nothing will move it: see `_STUCK`
waiting    for a person, an event, a quota or a timer
running    everything else
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Self

from smithers.workflow.states import ENDED_RUNS, WAITING_RUNS, RunStatus

GRACE: Final = timedelta(seconds=10)
"""How long something may be due before its lateness says anything."""


class Verdict(StrEnum):
    """What a person wants to know first."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    STUCK = "stuck"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DONE = "done"
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class Facts:
    """The counts that a verdict follows from, all of one moment `now` of the database."""

    status: RunStatus
    now: datetime
    dirty: bool = False
    dirty_since: datetime | None = None
    owner: str | None = None
    owner_live: bool = True
    failed: int = 0
    skipped: int = 0
    exhausted: int = 0
    leases: int = 0
    stale: int = 0
    lease_until: datetime | None = None
    ready: frozenset[str] = frozenset()
    ready_at: datetime | None = None
    open: int = 0
    due_at: datetime | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Read what the query `runs` gives."""
        run, facts, owner = row["run"], row["facts"], row["owner"]
        return cls(
            status=RunStatus(run["status"]),
            now=datetime.fromisoformat(facts["now"]),
            dirty=run["dirty"],
            dirty_since=_time(run["dirty_since"]),
            owner=None if owner is None else owner_label(owner),
            owner_live=owner is None or owner["live"],
            failed=facts["failed"],
            skipped=facts["skipped"],
            exhausted=facts["exhausted"],
            leases=facts["leases"],
            stale=facts["stale"],
            lease_until=_time(facts["lease_until"]),
            ready=frozenset(facts["ready"]),
            ready_at=_time(facts["ready_at"]),
            open=facts["open"],
            due_at=_time(facts["due_at"]),
        )

    @property
    def ended(self) -> bool:
        """Whether nothing will happen to the run by itself."""
        return self.status in ENDED_RUNS


@dataclass(frozen=True, slots=True)
class Serving:
    """Which duties living processes have taken on."""

    schedulers: int = 0
    supervisors: int = 0
    queues: frozenset[str] = frozenset()

    @classmethod
    def of(cls, processes: Iterable[Mapping[str, Any]]) -> Self:
        """Count the processes that the query `processes` gives."""
        listed = list(processes)
        kinds = [process["kind"] for process in listed]
        return cls(
            schedulers=kinds.count("scheduler"),
            supervisors=kinds.count("supervisor"),
            queues=frozenset(
                queue
                for process in listed
                if process["kind"] == "worker"
                for queue in process["queues"] or ["default"]
            ),
        )

    def serves(self, queue: str = "default") -> bool:
        """Whether runs whose tasks stand in this queue advance."""
        return self.schedulers > 0 and queue in self.queues


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """Something that isn't as it should be, with what ends it."""

    reason: str
    message: str
    since: str | None = None
    command: str | None = None


_STUCK: Final = frozenset({"nothing-moves", "no-scheduler", "no-worker", "nobody-repairs"})


def judge(facts: Facts, serving: Serving, revive: str) -> tuple[Verdict, tuple[Unhealthy, ...]]:
    """Give the verdict and what is unhealthy; `revive` is the command that starts processes."""
    wrong = () if facts.ended else tuple(_unhealthy(facts, serving, revive))
    return _verdict(facts, wrong), wrong


def _verdict(facts: Facts, wrong: tuple[Unhealthy, ...]) -> Verdict:
    match facts.status:
        case RunStatus.FINISHED | RunStatus.CONTINUED:
            whole = not (facts.failed or facts.skipped or facts.exhausted)
            return Verdict.DONE if whole else Verdict.DEGRADED
        case RunStatus.FAILED:
            return Verdict.FAILED
        case RunStatus.CANCELLED:
            return Verdict.CANCELLED
        case RunStatus.PAUSED:
            return Verdict.PAUSED
        case _ if any(each.reason in _STUCK for each in wrong):
            return Verdict.STUCK
        case _:
            return Verdict.WAITING if facts.status in WAITING_RUNS else Verdict.RUNNING


def _unhealthy(facts: Facts, serving: Serving, revive: str) -> Iterable[Unhealthy]:
    if facts.status is RunStatus.PAUSED:
        return
    lost = facts.stale > 0 or not facts.owner_live
    if facts.stale:
        words = f"{_count(facts.stale, 'attempt')} lost the worker"
        yield Unhealthy("stale-leases", words, _text(facts.lease_until))
    if not facts.owner_live:
        yield Unhealthy("owner-dead", f"its scheduler {facts.owner} is gone")
    if lost and not (serving.schedulers or serving.supervisors):
        yield Unhealthy("nobody-repairs", "no process lives that would give it back", None, revive)
    elif serving.schedulers == 0 and (since := _late(facts)) is not None:
        words = "no scheduler lives that would advance it"
        yield Unhealthy("no-scheduler", words, _text(since), revive)
    elif serving.schedulers > 0 and (since := _late(facts)) is not None:
        words = "no scheduler has looked at it"
        yield Unhealthy("overdue", words, _text(since))
    if facts.ready_at is not None and facts.now - facts.ready_at > GRACE:
        for queue in sorted(facts.ready - serving.queues):
            words = f"no worker serves the queue {queue}"
            command = revive if queue == "default" else f"smithers worker --queues {queue}"
            yield Unhealthy("no-worker", words, _text(facts.ready_at), command)
    if _motionless(facts):
        words = "nothing is in flight, due or awaited: this is a bug of Smithers"
        yield Unhealthy("nothing-moves", words)


def _late(facts: Facts) -> datetime | None:
    """Give since when a scheduler should have done something; None while it isn't late."""
    since = [when for when in (facts.dirty_since if facts.dirty else None, facts.due_at) if when]
    return min(since) if since and facts.now - min(since) > GRACE else None


def _motionless(facts: Facts) -> bool:
    held = facts.leases or facts.ready or facts.open
    return not (facts.dirty or held or facts.due_at)


def owner_label(process: Mapping[str, Any]) -> str:
    """Name a process as `kind:host:pid`."""
    return f"{process['kind']}:{process['host']}:{process['pid']}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _text(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
