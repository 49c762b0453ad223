"""The executors of a worker: warm ones by source hash, isolated ones for one attempt each."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import psycopg

from smithers.bundle.errors import BundleError
from smithers.bundle.store import Stored, fetch
from smithers.bundle.unpack import ensure
from smithers.process.child import SpawnRefusedError
from smithers.process.environment import Mark, claim_mark, executor_mark
from smithers.process.link import DatabaseAwayError, Link
from smithers.process.service import Service
from smithers.sql.rows import ClaimedTask
from smithers.worker.attempt import Attempt
from smithers.worker.executor import Executor, start_executor
from smithers.worker.outcome import WORKER_UNABLE
from smithers.workflow.attempts import AttemptError


class Folders:
    """Bundles on this host's disk: fetched and checked once per process."""

    def __init__(self, link: Link, home: Path) -> None:
        self.link = link
        self._home = home
        self._lock = threading.Lock()
        self._known: dict[str, Path] = {}

    def get(self, attempt: Attempt) -> Path:
        """The folder of an attempt's bundle; waits for a database that is away until the attempt
        is ended. Raises AttemptError.
        """
        source_hash = attempt.task.source_hash
        while attempt.verdict is None:
            try:
                with self._lock:
                    if source_hash not in self._known:
                        self._known[source_hash] = ensure(self._fetch, self._home, source_hash)
                    return self._known[source_hash]
            except BundleError as error:
                raise AttemptError(error.code, error.message, error.details) from error
            except OSError as error:
                raise AttemptError(
                    WORKER_UNABLE, f"the bundle can't be unpacked: {error}"
                ) from error
            except (DatabaseAwayError, psycopg.Error):
                attempt.wake.wait(self.link.pause())
        raise AttemptError(WORKER_UNABLE, "the attempt was ended before it began")

    def close(self) -> None:
        """Close the link."""
        self.link.close()

    def _fetch(self, source_hash: str) -> Stored:
        with self.link.connection() as connection:
            return fetch(connection, source_hash)


class Pool:
    """At most `slots` warm executors. Any thread may take one and gives it back."""

    def __init__(self, service: Service, folder: Callable[[Attempt], Path], *, slots: int) -> None:
        self._service = service
        self._folder = folder
        self._slots = slots
        self._lock = threading.Lock()
        self._idle: OrderedDict[Executor, str] = OrderedDict()
        self._busy: dict[Executor, str] = {}

    def take(self, attempt: Attempt) -> Executor:
        """An executor for this attempt, warm if there is one. Raises AttemptError."""
        task = attempt.task
        if is_isolated(task):
            return self._start(attempt, self._claim_mark(task))
        executor = self._warm(task.source_hash)
        if executor is None:
            mark = executor_mark(self._service.instance, self._service.owner, uuid4())
            executor = self._start(attempt, mark)
        with self._lock:
            self._busy[executor] = task.source_hash
        return executor

    def give_back(self, executor: Executor) -> None:
        """Keep it for the next attempt, or end it when it can't be used again."""
        done: Executor | None = executor
        with self._lock:
            source_hash = self._busy.pop(executor, None)
            if executor.usable and source_hash is not None:
                self._idle[executor] = source_hash
                done = self._surplus()
        if done is not None:
            done.dispose()

    def retire_all(self) -> None:
        """End those that are idle, and the others when they come back: they bear a dead owner's
        mark.
        """
        with self._lock:
            idle, self._idle = list(self._idle), OrderedDict()
            for executor in self._busy:
                executor.retire()
        for executor in idle:
            executor.dispose()

    def close(self) -> None:
        """End those that are idle, see `retire_all`."""
        self.retire_all()

    def _warm(self, source_hash: str) -> Executor | None:
        while True:
            with self._lock:
                found = next((e for e, known in self._idle.items() if known == source_hash), None)
                if found is None:
                    return None
                del self._idle[found]
            if found.usable and found.child.poll() is None:
                return found
            found.dispose()

    def _surplus(self) -> Executor | None:
        """The one that has been idle longest, if there are too many."""
        if len(self._idle) + len(self._busy) <= self._slots:
            return None
        return self._idle.popitem(last=False)[0]

    def _start(self, attempt: Attempt, mark: Mark) -> Executor:
        folder = self._folder(attempt)
        try:
            return start_executor(
                self._service.spawner.spawn, folder, mark=mark, settings=self._service.settings
            )
        except (OSError, SpawnRefusedError) as error:
            raise AttemptError(WORKER_UNABLE, f"no executor could be started: {error}") from error

    def _claim_mark(self, task: ClaimedTask) -> Mark:
        return claim_mark(
            self._service.instance,
            task.claim_id,
            run_id=task.run_id,
            node_id=task.node_id,
            iteration=task.iteration,
            attempt=task.attempt,
        )


def is_isolated(task: ClaimedTask) -> bool:
    """Whether each attempt of this task has a child of its own."""
    return bool(task.descriptor.get("isolate")) or task.descriptor.get("kind") == "agent"
