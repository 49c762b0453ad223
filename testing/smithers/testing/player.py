"""Play a run: frames, attempts, people and time, one after another, until nothing is left to do.

It is a fleet with a free slot for every task: whatever a frame makes ready begins at once, runs
in the order of the queue, and ends before the next frame. Bodies take no time by the fake clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from smithers.testing.bodies import Asked, Call, ask, run_attempt
from smithers.testing.errors import RUN_UNENDING, HarnessError, error_of
from smithers.testing.needs import needs_of
from smithers.testing.outcome import retry_delay, stored_error
from smithers.testing.people import People
from smithers.testing.rows import key_of
from smithers.testing.scripts import Scripts
from smithers.testing.show import tree_text
from smithers.testing.store import RunStore
from smithers.testing.stored import Json
from smithers.workflow.attempts import AttemptError
from smithers.workflow.keys import NodeKey
from smithers.workflow.states import ENDED_RUNS

MAX_FRAMES: Final = 500


@dataclass(slots=True)
class Player:
    """One run and all that acts on it. With `time_skipping` timers and retries come due as soon
    as nothing else is left to do; the deadline of a person or a signal never does by itself.
    """

    store: RunStore
    agents: Scripts
    tasks: Scripts
    people: People
    time_skipping: bool
    max_frames: int = MAX_FRAMES
    calls: list[Call] = field(default_factory=list[Call])

    def go_on(self) -> None:
        """Do all that can be done. Raises what a frame, a script or a body lets through, and
        HarnessError (RUN_UNENDING).
        """
        while True:
            self._frames()
            if self.store.status in ENDED_RUNS:
                return
            if not (self.people.act(self.store) or (self.time_skipping and self._skip())):
                return

    def advance(self, until: datetime) -> None:
        """Let time pass; do what becomes due on the way, in its order. Raises as `go_on`."""
        while (due := self.store.next_due()) is not None and due[0] <= until:
            self._pass(due[0])
            self.go_on()
            if self.store.status in ENDED_RUNS:
                break
        self._pass(max(until, self.store.now))
        self.go_on()

    def _frames(self) -> None:
        store = self.store
        while store.run["wanted_seq"] > store.run["rendered_seq"]:
            if store.run["frame_no"] >= self.max_frames:
                raise self._unending()
            doc = store.frame()
            begun = [self._begin(key_of(each)) for each in doc["ready"]]
            for key, attempt in begun:
                self._run(key, attempt)

    def _begin(self, key: NodeKey) -> tuple[NodeKey, int]:
        return key, self.store.start_attempt(key)

    def _run(self, key: NodeKey, attempt: int) -> None:
        """Run one attempt to its end."""
        store, descriptor = self.store, self.store.descriptor(key)
        asked = Asked(key, descriptor, (), {})
        try:
            asked = ask(key, descriptor, needs_of(store, descriptor))
            store.finish_attempt(key, run_attempt(asked, self.agents, self.tasks))
        except AttemptError as error:
            stored = stored_error(error, key)
            delay = retry_delay(descriptor, store.nodes[key].failures + 1, error.code)
            store.fail_attempt(key, stored, delay)
            self._note(asked, attempt, stored)
        else:
            self._note(asked, attempt, None)

    def _note(self, asked: Asked, attempt: int, error: Json | None) -> None:
        at, failure = self.store.now, error_of(error)
        call = Call(*asked.key, attempt, at, asked.keywords, asked.prompt, failure)
        self.calls.append(call)

    def _skip(self) -> bool:
        due = self.store.next_due()
        if due is None or not due[1]:
            return False
        self._pass(due[0])
        return True

    def _pass(self, until: datetime) -> None:
        self.store.now = max(self.store.now, until)
        self.store.fire_due()

    def _unending(self) -> HarnessError:
        return HarnessError(
            RUN_UNENDING,
            f"the run hasn't ended or parked after {self.max_frames} frames:\n"
            f"{tree_text(self.store)}",
            details={"frames": self.max_frames},
            hint="Look for a loop whose until never holds, or give max_frames=.",
        )
