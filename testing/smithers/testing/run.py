"""Start a workflow in a test, and let people, signals and time act on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Self
from weakref import ref

from pydantic import BaseModel

from smithers.testing.errors import NOW_INVALID, HarnessError
from smithers.testing.people import (
    People,
    Signals,
    answer,
    decide,
    find_approval,
    find_question,
    refuse_ended,
    send,
)
from smithers.testing.player import MAX_FRAMES, Player
from smithers.testing.rows import START
from smithers.testing.scripts import Scripts
from smithers.testing.store import RunStore
from smithers.testing.view import RunView
from smithers.workflow.definition import Workflow
from smithers.workflow.models import Decision
from smithers.workflow.states import RunStatus

RECENT: Final[deque[ref[RunView]]] = deque(maxlen=8)
"""The runs that were made last, for the report of a test that fails."""


class TestRun(RunView):
    """A run that a test drives. Every act goes on until nothing is left to do; returns the run."""

    def approve(
        self,
        node_id: str | None = None,
        *,
        iteration: int | None = None,
        note: str | None = None,
        by: str | None = None,
    ) -> Self:
        """Approve an open request; the only one if none is named. Raises HarnessError."""
        return self._decide(node_id, iteration, Decision(approved=True, note=note, decided_by=by))

    def deny(
        self,
        node_id: str | None = None,
        *,
        iteration: int | None = None,
        note: str | None = None,
        by: str | None = None,
    ) -> Self:
        """Deny an open request, which fails its node. Raises HarnessError."""
        return self._decide(node_id, iteration, Decision(approved=False, note=note, decided_by=by))

    def answer(self, node_id: str, response: object, *, iteration: int | None = None) -> Self:
        """Answer a HumanTask with a model or its fields.

        Raises HarnessError: ANSWER_INVALID (the question stays open), HUMAN_REQUEST_UNKNOWN.
        """
        answer(self._store, find_question(self._store, node_id, iteration), response)
        return self._go_on()

    def signal(self, name: str, payload: object = None) -> Self:
        """Send a signal; a wait takes it now, or when one opens. Raises HarnessError."""
        refuse_ended(self._store)
        send(self._store, {name: payload})
        return self._go_on()

    def advance(
        self,
        by: timedelta | None = None,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> Self:
        """Let time pass; timers, retries and deadlines on the way come due one after another."""
        given = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        self._player.advance(self.now + (by or timedelta()) + given)
        return self

    def resume(
        self,
        *,
        agents: Mapping[str, object] | None = None,
        tasks: Mapping[str, object] | None = None,
    ) -> Self:
        """Give what failed another chance, as `smithers up --resume` does; scripts that are given
        replace those that were.
        """
        if agents is not None:
            self._player.agents = Scripts("agents", agents)
        if tasks is not None:
            self._player.tasks = Scripts("tasks", tasks)
        self._store.resume_run()
        return self._go_on()

    def assert_status(self, status: RunStatus | str) -> Self:
        """Raise an AssertionError that explains the run if it has another status."""
        __tracebackhide__ = True  # the failure is where the test calls this
        assert self.status == RunStatus(status), f"expected {status}\n{self.explain()}"
        return self

    def _decide(self, node_id: str | None, iteration: int | None, decision: Decision) -> Self:
        decide(self._store, find_approval(self._store, node_id, iteration), decision)
        return self._go_on()

    def _go_on(self) -> Self:
        self._player.go_on()
        return self


def run_workflow(
    workflow: Workflow,
    run_input: BaseModel | Mapping[str, object] | None = None,
    *,
    agents: Mapping[str, object] | None = None,
    tasks: Mapping[str, object] | None = None,
    approve: bool | Mapping[str, object] | None = None,
    humans: Mapping[str, object] | None = None,
    signals: Signals = (),
    now: datetime = START,
    run_id: str = "test",
    max_concurrency: int | None = None,
    time_skipping: bool = True,
    max_frames: int = MAX_FRAMES,
) -> TestRun:
    """Run a workflow to its end, or to where it waits for what the test doesn't give.

    `agents` and `tasks` say by task id what an agent answers and what a body gives: a value, a
    list with one for each attempt, a function, or an exception; bodies without a script run.
    `approve` decides approvals: True or False for all, or by id. `humans` answers questions by
    id. `signals` are in the inbox from the start. `now` is where the fake clock (aware) begins;
    with `time_skipping` timers and retries come due by themselves, deadlines of people and
    signals don't.

    Raises what the core raises for a workflow that can't be run (AuthorError, RenderError, …),
    InputError, HarnessError, and AssertionErrors of scripts.
    """
    config = {} if max_concurrency is None else {"max_concurrency": max_concurrency}
    store = RunStore(workflow, run_input, run_id=run_id, now=_aware(now), config=config)
    send(store, signals)
    player = Player(
        store=store,
        agents=Scripts("agents", agents),
        tasks=Scripts("tasks", tasks),
        people=People(approve=approve, humans=humans),
        time_skipping=time_skipping,
        max_frames=max_frames,
    )
    run = TestRun(player)
    RECENT.append(ref(run))
    player.go_on()
    return run


def start_workflow(
    workflow: Workflow,
    run_input: BaseModel | Mapping[str, object] | None = None,
    *,
    agents: Mapping[str, object] | None = None,
    tasks: Mapping[str, object] | None = None,
    now: datetime = START,
    run_id: str = "test",
    max_concurrency: int | None = None,
    max_frames: int = MAX_FRAMES,
) -> TestRun:
    """Run a workflow to where it first waits, be it for time: the test does the rest by hand.

    As `run_workflow` without people, signals and time skipping.
    """
    return run_workflow(
        workflow,
        run_input,
        agents=agents,
        tasks=tasks,
        now=now,
        run_id=run_id,
        max_concurrency=max_concurrency,
        time_skipping=False,
        max_frames=max_frames,
    )


def _aware(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise HarnessError(NOW_INVALID, f"now={now!r} has no time zone", hint="Give tzinfo=UTC.")
    return now
