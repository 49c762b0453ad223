"""The worker's main thread: claim into free slots, spawn what slots ask for, drain at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from smithers.observability.metrics import METRICS
from smithers.process.link import DatabaseAwayError
from smithers.process.pace import Pace
from smithers.process.reaper import REAPER
from smithers.process.service import Service
from smithers.sql.errors import ProcessExpired
from smithers.worker.attempt import Attempt, Held, Verdict
from smithers.worker.flush import Flusher
from smithers.worker.outcome import token
from smithers.worker.pool import Folders, Pool
from smithers.worker.pulse import Pulse
from smithers.worker.slots import Slots
from smithers.worker.source import Source
from smithers.worker.watch import Watch

MAX_BUFFER: Final = 64
BUFFER_SECONDS: Final = 0.1
"""Work that may lie ready: a worker that is idle would have it sooner than we could."""
_LONGEST_SECONDS = 5.0
_REAP_SECONDS = 5.0
_FLUSH_SECONDS = 10.0


class Worker:
    """One worker. `step` is what its service runs; `drain` ends it."""

    def __init__(self, service: Service, source: Source, *, slots: int) -> None:
        self._service = service
        self._source = source
        self._held = Held()
        self._pace = Pace()
        self._expired = False
        self._look_at = 0.0
        self._reap_at = 0.0
        self._folders = Folders(service.link("bundles"), service.settings.home)
        self._pool = Pool(service, self._folders.get, slots=slots)
        self._flusher = Flusher(service, self._held, on_settled=service.wake.set)
        self._slots = Slots(
            self._pool, slots=slots, on_done=self._flusher.put, on_free=service.wake.set
        )
        self._pulse = Pulse(
            service, self._held, on_old=self._flusher.log_starts, on_expired=self._on_expired
        )
        links = [service.main, self._pulse.link, self._flusher.link, self._folders.link]
        self._watch = Watch(service, self._held, links)

    def start(self) -> None:
        """Start all threads."""
        for part in (self._flusher, self._slots, self._pulse, self._watch):
            part.start()

    def step(self) -> float:
        """Claim if there may be work and room; returns the seconds until the next look."""
        if self._expired:
            self._begin_anew()
        self._reap_strangers()
        busy = min(self._slots.in_hand, self._slots.size)
        METRICS.slots.set(busy, "busy")
        METRICS.slots.set(self._slots.size - busy, "free")
        free = self._slots.size - self._slots.in_hand
        room = free + self._buffer()
        if room <= 0 or (free <= 0 and room < self._buffer() / 2):
            return _LONGEST_SECONDS  # a slot that gets free wakes us
        left = self._look_at - time.monotonic()
        if left > 0:
            return left
        return self._claim(room, max(0, free))

    def look_soon(self) -> None:
        """There may be work; any thread may say so."""
        self._look_at = 0.0

    def drain(self, grace: float) -> None:
        """End: give back what waits, let bodies finish within `grace` seconds, give back the rest.

        A second signal cuts the grace short. What can't be written because the database is away
        is left to the leases.
        """
        service = self._service
        released = self._slots.give_back_waiting()
        service.log.info("draining", running=self._slots.in_hand, released=released)
        self._wait_until_idle(grace, hurry=True)
        for attempt in self._held.all():
            if attempt.runs:
                attempt.end(Verdict.RELEASED)
        self._slots.give_back_waiting()
        # After a lease others take over anyway.
        self._wait_until_idle(min(_FLUSH_SECONDS, service.lease.total_seconds()), hurry=False)
        self._slots.stop()
        self._flusher.stop()
        self._watch.stop()
        self._pulse.stop()
        self._pool.close()
        self._folders.close()
        for attempt in self._held.all():
            service.log.warning("attempt-left-behind", **token(attempt.task))

    def _claim(self, room: int, free: int) -> float:
        """Claim; returns the seconds until the next look.

        A queue that gave all that was asked for is looked at again as soon as there is room; one
        that gave less was empty, and is left alone until it calls or its time has come.
        """
        self._look_at = float("inf")  # `look_soon` meanwhile is about what we may not see
        try:
            attempts = self._source.claim(limit=room, free=free)
        except ProcessExpired:
            self._on_expired()
            return 0.0
        except BaseException:
            self._look_at = 0.0
            raise
        self._take(attempts)
        if attempts:
            self._pace.worked()
        pause = 0.0 if len(attempts) >= room else self._pace.idle(listening=self._service.listening)
        self._look_at = min(self._look_at, time.monotonic() + pause)
        return pause

    def _take(self, attempts: Sequence[Attempt]) -> None:
        self._held.add(attempts)
        for attempt in attempts:
            METRICS.claims.add(attempt.task.queue)
            METRICS.claim_latency.observe(attempt.task.waited_ms / 1000)
        self._slots.put(attempts)

    def _buffer(self) -> int:
        """How many short tasks may wait in line: what the slots do in a tenth of a second."""
        mean = self._slots.mean_seconds
        if mean is None:
            return 0
        lies = min(BUFFER_SECONDS, self._service.heartbeat.total_seconds() / 4)
        return min(MAX_BUFFER, int(self._slots.size * lies / max(mean, 0.0005)))

    def _wait_until_idle(self, seconds: float, *, hurry: bool) -> None:
        service = self._service
        deadline = time.monotonic() + seconds
        while self._slots.in_hand or self._flusher.unwritten:
            left = deadline - time.monotonic()
            if left <= 0 or (hurry and service.stop.hurried):
                break
            service.wake.wait(left)
            service.spawner.serve()

    def _on_expired(self) -> None:
        """The database has declared this process dead: nothing that it holds is its own."""
        if not self._expired:
            self._service.log.error("process-expired", owner=self._service.owner)
        for attempt in self._held.all():
            attempt.end(Verdict.LOST)
        self._expired = True
        self._service.wake.set()

    def _reap_strangers(self) -> None:
        now = time.monotonic()
        if now >= self._reap_at:
            self._reap_at = now + _REAP_SECONDS
            REAPER.reap_strangers()

    def _begin_anew(self) -> None:
        """Register under a new uuid. Raises DatabaseAwayError."""
        self._slots.give_back_waiting()
        self._source.forget()
        self._service.register()
        self._pool.retire_all()
        self._expired = False
        self._look_at = 0.0
        self._service.log.info("registered-anew", owner=self._service.owner)


__all__ = ["DatabaseAwayError", "Worker"]
