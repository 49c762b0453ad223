"""How results reach the database: one thread, batches, nothing dropped while it is away.

The thread writes as soon as it is free, so that a lone result is written at once and results
that come meanwhile share a transaction. A write whose connection died is settled by asking by
token what became of it, before anything is sent again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import psycopg

from smithers.observability.metrics import METRICS
from smithers.process.link import DatabaseAwayError, Link
from smithers.process.service import Service
from smithers.sql.calls import Connection
from smithers.sql.errors import is_transient
from smithers.sql.notify import DIRTY, notify
from smithers.sql.rows import Json
from smithers.sql.worker import attempt_outcomes, complete_encoded, end_attempts, log_starts
from smithers.worker.attempt import Attempt, Held, Verdict
from smithers.worker.outcome import (
    Cancelled,
    Dropped,
    Failed,
    Finished,
    Outcome,
    Released,
    complete_item,
    end_item,
    outcome_of,
    token,
)
from smithers.workflow.attempts import OUTPUT_NOT_STORABLE, AttemptError
from smithers.workflow.errors import SmithersError

MAX_ITEMS: Final = 256
MAX_BYTES: Final = 8 * 1024 * 1024
_BUSY_ITEMS = 8
_LINGER_SECONDS = 0.002
_NOTIFY_SECONDS = 0.005

Ended: TypeAlias = Failed | Released | Cancelled


@dataclass(frozen=True, slots=True)
class Result:
    """One attempt, how it ended, and what is sent about it."""

    attempt: Attempt
    outcome: Finished | Ended
    item: bytes | Json

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return len(self.item) if isinstance(self.item, bytes) else 1_000


class Flusher:
    """Takes outcomes from the slots and writes them. `put` and `log_starts` never wait."""

    def __init__(self, service: Service, held: Held, *, on_settled: Callable[[], None]) -> None:
        self._service = service
        self._held = held
        self._on_settled = on_settled
        self.link: Link = service.link("flush")
        self._ready = threading.Condition()
        self._results: list[Result] = []
        self._starts: list[Attempt] = []
        self._writing = 0
        self._last_batch = 0
        self._notified_at = 0.0
        self._owes_notify = False
        self._stopping = False
        self._given_up = False
        self._thread = threading.Thread(target=self._run, name="flush", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def put(self, attempt: Attempt, outcome: Outcome) -> None:
        """Write how an attempt ended; it stays held until that is settled."""
        match outcome:
            case Dropped():
                self._settle(attempt, "lost")
                return
            case Finished():
                result = Result(attempt, outcome, complete_item(attempt.task, outcome))
            case _:
                result = Result(attempt, outcome, end_item(attempt.task, outcome))
        with self._ready:
            self._results.append(result)
            self._ready.notify()

    def log_starts(self, attempts: Sequence[Attempt]) -> None:
        """Log these as started, when there is time."""
        for attempt in attempts:
            attempt.start_logged = True
        with self._ready:
            self._starts += attempts
            self._ready.notify()

    @property
    def unwritten(self) -> int:
        """How many results are not settled yet."""
        with self._ready:
            return len(self._results) + self._writing

    def stop(self) -> None:
        """End the thread; what it can't write at once stays unwritten."""
        with self._ready:
            self._stopping = True
            self._ready.notify()
        self._thread.join(0.5)
        self._given_up = True
        self.link.abandon()
        self._thread.join(5.0)

    def _run(self) -> None:
        while True:
            with self._ready:
                while not (self._results or self._starts or self._stopping):
                    if not self._ready.wait(self._patience()):
                        break
                if self._stopping and not self._results:
                    break
                self._linger()
                batch, starts = self._take()
            self._write(batch)
            self._write_starts(starts)
            if not batch:
                self._pay_notify()
        self.link.close()

    def _patience(self) -> float | None:
        """Seconds until a notification that is owed must go out."""
        if not self._owes_notify:
            return None
        return max(0.0, self._notified_at + _NOTIFY_SECONDS - time.monotonic())

    def _linger(self) -> None:
        """Under load wait a little for company: a commit costs more than its rows."""
        if self._last_batch < _BUSY_ITEMS or self._stopping:
            return
        deadline = time.monotonic() + _LINGER_SECONDS
        while len(self._results) < self._last_batch:
            left = deadline - time.monotonic()
            if left <= 0 or not self._ready.wait(left):
                break

    def _take(self) -> tuple[list[Result], list[Attempt]]:
        batch: list[Result] = []
        size = 0
        while self._results and len(batch) < MAX_ITEMS:
            size += self._results[0].size
            if batch and size > MAX_BYTES:
                break
            batch.append(self._results.pop(0))
        self._writing = self._last_batch = len(batch)
        starts, self._starts = self._starts, []
        return batch, starts

    def _write(self, batch: list[Result]) -> None:
        self._write_all([r for r in batch if isinstance(r.outcome, Finished)])
        self._write_all([r for r in batch if not isinstance(r.outcome, Finished)])
        with self._ready:
            self._writing = 0
        self._on_settled()

    def _write_all(self, results: list[Result]) -> None:
        """Write results of one kind until each is settled."""
        unsure = False
        while results and not self._given_up:
            try:
                with self.link.connection() as connection:
                    if unsure:
                        results = self._still_mine(connection, results)
                        unsure = False
                    accepted = self._send(connection, results) if results else []
            except DatabaseAwayError:
                unsure = True
                self._pause()
            except Exception as error:  # noqa: BLE001  # no result may end the thread
                if isinstance(error, psycopg.Error) and is_transient(error):
                    self._pause()
                else:
                    self._refused(results, error)
                    return
            else:
                for result, good in zip(results, accepted, strict=True):
                    self._settle(result.attempt, _name(result.outcome) if good else "fenced")
                return

    def _send(self, connection: Connection, results: list[Result]) -> list[bool]:
        now = time.monotonic()
        at_once = now - self._notified_at >= _NOTIFY_SECONDS
        if isinstance(results[0].outcome, Finished):
            texts = [r.item for r in results if isinstance(r.item, bytes)]
            accepted = complete_encoded(connection, texts, notify=at_once)
        else:
            items = [r.item for r in results if isinstance(r.item, dict)]
            accepted = end_attempts(connection, items, notify=at_once)
        if at_once:
            self._notified_at = now
        else:
            self._owes_notify = True
        return accepted

    def _still_mine(self, connection: Connection, results: list[Result]) -> list[Result]:
        """Settle what an earlier try has done or lost; give the rest."""
        outcomes = attempt_outcomes(connection, [token(r.attempt.task) for r in results])
        rest: list[Result] = []
        for result, outcome in zip(results, outcomes, strict=True):
            match outcome:
                case "mine":
                    rest.append(result)
                case "done":
                    self._settle(result.attempt, _name(result.outcome))
                case "lost":
                    self._settle(result.attempt, "fenced")
        return rest

    def _refused(self, results: list[Result], error: Exception) -> None:
        """The database refuses the batch for what is in it: find out which result is to blame."""
        if len(results) > 1:
            for result in results:
                self._write_all([result])
            return
        (result,) = results
        task = result.attempt.task
        self._service.log.error("result-refused", reason=str(error)[:500], **token(task))
        if isinstance(result.outcome, Finished):
            code = error.code if isinstance(error, SmithersError) else OUTPUT_NOT_STORABLE
            reason = f"the database refuses the output: {' '.join(str(error).split())[:500]}"
            ended = outcome_of(AttemptError(code, reason), task)
            self._write_all([Result(result.attempt, ended, end_item(task, ended))])
        elif isinstance(result.item, dict) and "details" in (result.item.get("error") or {}):
            bare = {"code": result.item["error"]["code"], "message": "its details can't be stored"}
            item = {**result.item, "error": bare}
            self._write_all([Result(result.attempt, result.outcome, item)])
        else:
            # The lease ends by itself, and others decide.
            self._settle(result.attempt, "refused")

    def _settle(self, attempt: Attempt, outcome: str) -> None:
        if outcome == "fenced":
            METRICS.fenced.add()
            self._service.log.warning("attempt-fenced", **token(attempt.task))
            attempt.end(Verdict.LOST)
        METRICS.attempts.add(outcome)
        self._held.remove(attempt)

    def _write_starts(self, attempts: list[Attempt]) -> None:
        """Log starts once; a start whose attempt has ended meanwhile was logged with its end."""
        if not attempts:
            return
        try:
            with self.link.connection() as connection:
                log_starts(connection, [token(attempt.task) for attempt in attempts])
        except (DatabaseAwayError, psycopg.Error):
            for attempt in attempts:
                attempt.start_logged = False  # the pulse will bring it again

    def _pay_notify(self) -> None:
        """Send the notification that was held back, for all results since the last."""
        if not self._owes_notify or time.monotonic() - self._notified_at < _NOTIFY_SECONDS:
            return
        self._owes_notify = False
        self._notified_at = time.monotonic()
        try:
            with self.link.connection() as connection:
                notify(connection, DIRTY)
        except (DatabaseAwayError, psycopg.Error):
            return  # it only shortens a wait

    def _pause(self) -> None:
        """Wait before the next try, not at all once there is no more time."""
        deadline = time.monotonic() + self.link.pause()
        while not self._given_up and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))


def _name(outcome: Finished | Ended) -> str:
    return type(outcome).__name__.lower()
