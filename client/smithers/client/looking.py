"""A run's handle, first half: look at the run, read what it has made, wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeVar, cast, overload

from pydantic import BaseModel, JsonValue, ValidationError

from smithers.client.handle import Handle
from smithers.client.waiting import follow, wait
from smithers.operations import looking, reading
from smithers.operations.results import EventLine, NodeOutput, RunStatus, Why
from smithers.workflow.errors import OUTPUT_MISMATCH, ReadError
from smithers.workflow.models import in_words, load, problems

Model = TypeVar("Model", bound=BaseModel)


class Looking(Handle):
    """What can be seen of a run. Every method raises UnknownRun when the run has been removed,
    and DatabaseUnavailable.
    """

    def status(self) -> RunStatus:
        """Look at the run: its state, verdict, nodes, and what blocks it."""
        return self._connections.repeat(lambda o: looking.status(o.connection, self.id))

    def why(self) -> Why:
        """Say why the run is where it is, with the next command for each reason."""
        return self._connections.repeat(lambda o: looking.why(o.connection, self.id))

    def wait(
        self, timeout: float | None = None, *, until: Literal["ended", "parked"] = "ended"
    ) -> RunStatus:
        """Wait until the run has ended, or `until="parked"`: has ended or waits, is paused.

        Seconds; None waits for ever. An outage of the database shorter than the client's
        `connect_timeout` is waited out. Raises WaitTimeout, and leaves the run alone.
        """
        return wait(self._connections, self.id, until=until, timeout=timeout)

    def events(self, *, since: int = 0, limit: int | None = None) -> list[EventLine]:
        """Give the entries of the run's log after number `since`, in order: all, or the first."""
        if limit is not None:
            return self._connections.repeat(
                lambda o: reading.events(o.connection, self.id, since=since, limit=limit)
            )
        return self._connections.repeat(
            lambda o: list(reading.all_events(o.connection, self.id, since=since))
        )

    def follow(self, *, since: int = 0, timeout: float | None = None) -> Iterator[EventLine]:
        """Give the entries of the log as they come, until the run has ended and all are given.

        With `timeout` it stops after so many seconds: go on `since` the last one's `seq`. Holds
        no connection while it waits.
        """
        return follow(self._connections, self.id, since=since, timeout=timeout)

    @overload
    def output(self, node: str, *, iteration: int | None = None) -> JsonValue: ...

    @overload
    def output(self, node: str, *, model: type[Model], iteration: int | None = None) -> Model: ...

    def output(
        self, node: str, *, model: type[BaseModel] | None = None, iteration: int | None = None
    ) -> JsonValue | BaseModel:
        """Give what a node has made: JSON, or an instance of `model`; of its last finished pass
        unless one is named.

        Raises OperationError (NODE_UNKNOWN, OUTPUT_MISSING), ReadError (OUTPUT_MISMATCH).
        """
        found = self._connections.repeat(
            lambda o: reading.output(o.connection, self.id, node, iteration=iteration)
        )
        value = cast("JsonValue", found.value)
        return value if model is None else _fit(value, model, found, self.id)

    def outputs(self) -> list[NodeOutput]:
        """Give the values of all finished nodes, in the order in which they were mounted."""
        return self._connections.repeat(lambda o: reading.outputs(o.connection, self.id))


def _fit(value: JsonValue, model: type[Model], found: NodeOutput, run_id: str) -> Model:
    try:
        return load(model, value) if isinstance(value, dict) else model.model_validate(value)
    except ValidationError as error:
        fields = problems(error)
        raise ReadError(
            OUTPUT_MISMATCH,
            f"the output of {found.node_id!r} (iteration {found.iteration}) of run {run_id} "
            f"doesn't fit {model.__name__}: {in_words(fields)}",
            details={"node_id": found.node_id, "iteration": found.iteration, "fields": fields},
            hint="leave model= out to get it as JSON",
        ) from error
