"""What a workflow function reads: its input, and the outputs that are there already."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from smithers.workflow.canonical import as_object
from smithers.workflow.containers import Loop
from smithers.workflow.errors import (
    INVALID_REFERENCE,
    OUTPUT_MISMATCH,
    OUTPUT_MISSING,
    ReadError,
)
from smithers.workflow.facts import Chains, Facts
from smithers.workflow.keys import NodeKey
from smithers.workflow.models import Event, in_words, load, problems
from smithers.workflow.nodes import Ref
from smithers.workflow.states import TASK_KINDS, NodeKind

Input = TypeVar("Input", bound=BaseModel)
T = TypeVar("T", bound=BaseModel)

NOTHING: Final = object()


class Ctx(Generic[Input]):
    """The facts of a run, as far as a workflow function may look at them.

    An output in a loop is that of the current pass, unless `iteration` names another.
    """

    __slots__ = ("_asked", "_asked_loops", "_facts", "_input")

    def __init__(self, run_input: Input, facts: Facts) -> None:
        self._input = run_input
        self._facts = facts
        self._asked: dict[str, NodeKey] = {}
        self._asked_loops: dict[str, NodeKey] = {}

    @property
    def input(self) -> Input:
        """The run's input."""
        return self._input

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._facts.run.run_id

    def asked_elsewhere(self, chains: Chains) -> bool:
        """Say whether a read would look into another pass if nodes stood in these loops."""
        seen = self._facts.with_chains(chains)
        return any(seen.key_of(name) != key for name, key in self._asked.items()) or any(
            seen.loop_key_of(name) != key for name, key in self._asked_loops.items()
        )

    def output(self, ref: Ref[T], *, iteration: int | None = None) -> T:
        """Give an output that must be there.

        Raises ReadError: OUTPUT_MISSING, OUTPUT_MISMATCH if what is stored doesn't fit the
        model, INVALID_REFERENCE.
        """
        value = self.output_maybe(ref, iteration=iteration)
        if value is None:
            raise self._missing(ref, iteration)
        return value

    def output_maybe(self, ref: Ref[T], *, iteration: int | None = None) -> T | None:
        """Give an output, or None if it isn't there: not yet, skipped, or failed.

        Raises ReadError: OUTPUT_MISMATCH, INVALID_REFERENCE.
        """
        node_id, current = self._key(ref)
        return self._read(ref, (node_id, current if iteration is None else iteration))

    def latest(self, ref: Ref[T]) -> T | None:
        """Give the output of the highest pass that has one. Raises ReadError."""
        for iteration in reversed(self._iterations(ref)):
            return self._read(ref, (self._key(ref)[0], iteration))
        return None

    def outputs(self, ref: Ref[T]) -> list[T]:
        """Give the outputs of all passes of the innermost loop, in order. Raises ReadError."""
        node_id, _ = self._key(ref)
        found = (self._read(ref, (node_id, each)) for each in self._iterations(ref))
        return [value for value in found if value is not None]

    def iteration(self, of: str | Loop | Ref[BaseModel]) -> int:
        """Give the current pass, from 0, of a loop (itself or its id) or of a node in one.

        It is 0 for what hasn't begun. Raises ReadError (INVALID_REFERENCE).
        """
        if isinstance(of, Ref):
            return self._key(of)[1]
        return self._loop_key(of)[1]

    def iteration_count(self, of: str | Loop | Ref[BaseModel]) -> int:
        """Give how many passes of a loop have ended, or how many outputs a node in one has.

        Raises ReadError (INVALID_REFERENCE).
        """
        if isinstance(of, Ref):
            return len(self._iterations(of))
        node_id, current = self._loop_key(of)
        row = self._facts.rows.get((node_id, current))
        return current + (row is not None and row.state == "finished")

    def _loop_key(self, of: object) -> NodeKey:
        name: object = of.id if isinstance(of, Loop) else of
        if not isinstance(name, str):
            raise _no_reference(of)
        key = self._asked_loops[name] = self._facts.loop_key_of(name)
        return key

    def _key(self, ref: object) -> NodeKey:
        if not isinstance(ref, Ref):
            raise _no_reference(ref)
        key = self._asked[ref.id] = self._facts.key_of(ref.id)
        return key

    def _iterations(self, ref: Ref[BaseModel]) -> list[int]:
        node_id, _ = self._key(ref)
        last = self._facts.last.get(node_id, 0)
        return [
            each for each in range(last + 1) if self._stored(ref, (node_id, each)) is not NOTHING
        ]

    def _read(self, ref: Ref[T], key: NodeKey) -> T | None:
        stored = self._stored(ref, key)
        if stored is NOTHING:
            return None
        try:
            fields = as_object(stored)
            return ref.output.model_validate(stored) if fields is None else load(ref.output, fields)
        except ValidationError as error:
            found = problems(error)
            raise ReadError(
                OUTPUT_MISMATCH,
                f"the output of {ref.id!r} (iteration {key[1]}) doesn't fit "
                f"{ref.output.__name__}: {in_words(found)}",
                details={"node_id": key[0], "iteration": key[1], "fields": found},
                hint="The model has changed since the output was stored.",
            ) from error

    def _stored(self, ref: Ref[BaseModel], key: NodeKey) -> object:
        """Give an output's fields, or NOTHING."""
        facts = self._facts
        if ref.kind in TASK_KINDS:
            return facts.outputs.get(key, NOTHING)
        if ref.kind is NodeKind.EVENT:
            return event_fields(ref.output, facts.events[key]) if key in facts.events else NOTHING
        if ref.kind is NodeKind.APPROVAL:
            return _decision(facts, key)
        if ref.kind is NodeKind.TIMER:
            timer = facts.timers.get(key)
            return {"due_at": timer.due_at.isoformat()} if timer and timer.fired else NOTHING
        human = facts.humans.get(key)
        row = facts.rows.get(key)
        # An answer that doesn't fit fails its node; it is no output.
        answered = human and human.status == "answered" and not (row and row.state == "failed")
        return human.response if human and answered else NOTHING

    def _missing(self, ref: Ref[BaseModel], iteration: int | None) -> ReadError:
        node_id, current = self._key(ref)
        key = (node_id, current if iteration is None else iteration)
        row = self._facts.rows.get(key)
        state = "not mounted yet" if row is None else row.state.value
        return ReadError(
            OUTPUT_MISSING,
            f"{ref.id!r} (iteration {key[1]}) has no output: it is {state}",
            details={"node_id": key[0], "iteration": key[1], "state": state},
            hint="Read it with output_maybe, and mount what needs it only when it is there.",
        )


def event_fields(model: type[BaseModel], payload: object) -> object:
    """Give a signal's payload as the fields of the model that a wait asks for."""
    return {"payload": payload} if model is Event else payload


def _decision(facts: Facts, key: NodeKey) -> object:
    row = facts.approvals.get(key)
    if row is None or row.decision is None:
        return NOTHING
    return {
        "approved": row.decision == "approved",
        "note": row.note,
        "decided_by": row.decided_by,
    }


def _no_reference(given: object) -> ReadError:
    return ReadError(
        INVALID_REFERENCE,
        f"a {type(given).__name__} is no reference to a node: {given!r}",
        hint="Pass the Task, wait or Loop value itself.",
    )
