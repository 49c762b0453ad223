"""The people around a run: what they are asked, what they may say, what a test has them say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

from smithers.testing.errors import (
    APPROVAL_ALREADY_DECIDED,
    APPROVAL_AMBIGUOUS,
    APPROVAL_UNKNOWN,
    HUMAN_REQUEST_AMBIGUOUS,
    HUMAN_REQUEST_UNKNOWN,
    RUN_ALREADY_ENDED,
    SCRIPT_INVALID,
    HarnessError,
)
from smithers.testing.scripts import Scripts, play
from smithers.testing.store import RunStore
from smithers.testing.stored import stored_json
from smithers.workflow.attempts import AttemptError
from smithers.workflow.errors import ANSWER_INVALID
from smithers.workflow.keys import NodeKey, author_id
from smithers.workflow.models import Decision
from smithers.workflow.states import ENDED_RUNS
from smithers.workflow.turns import misfits

PERSON = "test"

Signals: TypeAlias = Mapping[str, object] | Iterable[tuple[str, object]]
"""Payloads by the name of their signal; pairs when a name comes several times."""


class People:
    """What a test has people say by themselves, whenever the run waits for them.

    `approve`: True or False for every approval, or by id a bool, a Decision, or a list of these.
    """

    def __init__(
        self, *, approve: bool | Mapping[str, object] | None, humans: Mapping[str, object] | None
    ) -> None:
        self._all = approve if isinstance(approve, bool) else None
        self._approvals = Scripts("approve", None if isinstance(approve, bool) else approve)
        self._humans = Scripts("humans", humans)

    def unused(self) -> list[str]:
        """Give the ids that were never asked for."""
        return self._approvals.unused() + self._humans.unused()

    def act(self, store: RunStore) -> bool:
        """Say one thing that the run waits for; False when the script has nothing to say."""
        for key in open_approvals(store):
            if self._all is not None or key[0] in self._approvals:
                said = self._all if self._all is not None else self._approvals.next(key[0])
                decide(store, key, _decision(key[0], said))
                return True
        for key in open_questions(store):
            if key[0] in self._humans:
                answer(store, key, self._said(key, store.humans[key]["prompt"]))
                return True
        return False

    def _said(self, key: NodeKey, prompt: str) -> object:
        try:
            return play(self._humans.next(key[0]), SCRIPT_INVALID, prompt)
        except AttemptError as error:
            raise HarnessError(
                SCRIPT_INVALID,
                f"humans[{key[0]!r}] gave no answer: {error.message}",
                hint="Leave the question out, and let its deadline pass with run.advance().",
            ) from error


def open_approvals(store: RunStore) -> list[NodeKey]:
    """Give the approvals that nobody has decided, in the order of their opening."""
    return [
        key
        for key, row in store.approvals.items()
        if row["decision"] is None and not row.get("expired")
    ]


def open_questions(store: RunStore) -> list[NodeKey]:
    """Give the questions that nobody has answered."""
    return [key for key, row in store.humans.items() if row["status"] == "pending"]


def find_approval(store: RunStore, node_id: str | None, iteration: int | None) -> NodeKey:
    """Give the open approval that a test means; the only one when it names none.

    Raises HarnessError: APPROVAL_UNKNOWN, APPROVAL_AMBIGUOUS, APPROVAL_ALREADY_DECIDED,
    RUN_ALREADY_ENDED.
    """
    refuse_ended(store)
    found = _matching(open_approvals(store), node_id, iteration)
    if len(found) == 1:
        return found[0]
    if found:
        raise _refusal(APPROVAL_AMBIGUOUS, f"{len(found)} approvals are open: {_names(found)}")
    decided = [key for key, row in store.approvals.items() if row["decision"] is not None]
    for key in _matching(decided, node_id, iteration):
        word = store.approvals[key]["decision"]
        raise _refusal(APPROVAL_ALREADY_DECIDED, f"approval {_names([key])} was {word} already")
    at = "" if node_id is None else f" at {node_id!r}"
    raise _refusal(
        APPROVAL_UNKNOWN, f"the run has no open approval{at}; {_open(open_approvals(store))}"
    )


def find_question(store: RunStore, node_id: str | None, iteration: int | None) -> NodeKey:
    """Give the open question that a test means.

    Raises HarnessError: HUMAN_REQUEST_UNKNOWN, HUMAN_REQUEST_AMBIGUOUS, RUN_ALREADY_ENDED.
    """
    refuse_ended(store)
    found = _matching(open_questions(store), node_id, iteration)
    if len(found) == 1:
        return found[0]
    if found:
        raise _refusal(HUMAN_REQUEST_AMBIGUOUS, f"{len(found)} are open: {_names(found)}")
    at = "" if node_id is None else f" at {node_id!r}"
    raise _refusal(HUMAN_REQUEST_UNKNOWN, f"nobody is asked{at}; {_open(open_questions(store))}")


def refuse_ended(store: RunStore) -> None:
    """Raise HarnessError (RUN_ALREADY_ENDED) if nothing can be said to the run any more."""
    if store.status in ENDED_RUNS:
        raise _refusal(RUN_ALREADY_ENDED, f"the run is {store.status.value} already")


def decide(store: RunStore, key: NodeKey, decision: Decision) -> None:
    """Decide an open approval."""
    by = decision.decided_by or PERSON
    store.decide_approval(key, approved=decision.approved, note=decision.note, by=by)


def answer(store: RunStore, key: NodeKey, response: object) -> None:
    """Answer an open question. Raises HarnessError (ANSWER_INVALID): it stays open."""
    stored = stored_json(response, f"the answer to {key[0]!r}")
    ref, _, _ = store.memo.known[author_id(key[0])]
    wrong = misfits(ref.output, stored)
    if wrong is not None:
        raise HarnessError(
            ANSWER_INVALID,
            f"the answer to {key[0]!r} doesn't fit {ref.output.__name__}: {wrong}",
            details={"node_id": key[0], "iteration": key[1]},
        )
    store.answer_human(key, stored)


def send(store: RunStore, signals: Signals) -> None:
    """Put signals into the inbox."""
    pairs = (
        cast("Mapping[str, object]", signals).items() if isinstance(signals, Mapping) else signals
    )
    for name, payload in pairs:
        store.send_signal(name, payload)


def _decision(node_id: str, said: object) -> Decision:
    if isinstance(said, Decision):
        return said
    if isinstance(said, bool):
        return Decision(approved=said)
    raise HarnessError(
        SCRIPT_INVALID,
        f"approve[{node_id!r}] says {said!r}",
        hint="Give True, False or a Decision for each time that it is asked.",
    )


def _matching(keys: Iterable[NodeKey], node_id: str | None, iteration: int | None) -> list[NodeKey]:
    return [
        key
        for key in keys
        if node_id in (None, key[0], author_id(key[0])) and iteration in (None, key[1])
    ]


def _open(keys: list[NodeKey]) -> str:
    return f"open: {_names(keys)}" if keys else "none is open"


def _names(keys: Iterable[NodeKey]) -> str:
    return ", ".join(f"{node_id!r} (iteration {iteration})" for node_id, iteration in keys)


def _refusal(code: str, message: str) -> HarnessError:
    return HarnessError(code, message, hint="run.waiting says what the run waits for.")
