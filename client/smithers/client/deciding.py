"""A run's handle, second half: decide about the run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import uuid4

from smithers.client.handle import Handle
from smithers.client.receipts import Receipt
from smithers.client.values import JsonInput, as_json
from smithers.operations import deciding
from smithers.operations.errors import DATA_NOT_JSON
from smithers.operations.idempotency import check_key
from smithers.operations.results import Admitted
from smithers.operations.resuming import Terms, resume
from smithers.sql.rows import Json
from smithers.workflow.states import RunStatus as RunState


class Deciding(Handle):
    """What can be decided about a run; what is decided is stored when a method returns.

    A decision is stored once for its idempotency key: a repeat gives the first receipt, and
    another decision under the same key is refused (IDEMPOTENCY_KEY_REUSED). In embedded mode a
    detached engine goes on with the run. Every method raises UnknownRun, Refused
    (RUN_ALREADY_ENDED), OperationError (ENGINE_FAILED: the decision stands) and
    DatabaseUnavailable (whether it stands is unknown: repeat it with the same key).
    """

    def approve(
        self,
        node: str | None = None,
        *,
        iteration: int | None = None,
        by: str | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Approve what the run asks for; name the node when it asks for several things.

        Raises Refused (APPROVAL_UNKNOWN, APPROVAL_AMBIGUOUS, APPROVAL_ALREADY_DECIDED).
        """
        act = partial(deciding.approve, node_id=node, iteration=iteration, by=by, note=note)
        return self._decide(act, idempotency_key)

    def deny(
        self,
        node: str | None = None,
        *,
        iteration: int | None = None,
        by: str | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Deny what the run asks for, which fails its node. Raises as `approve`."""
        act = partial(deciding.deny, node_id=node, iteration=iteration, by=by, note=note)
        return self._decide(act, idempotency_key)

    def signal(
        self, name: str, data: JsonInput = None, *, idempotency_key: str | None = None
    ) -> Receipt:
        """Put a signal into the run's inbox; the first wait for its name takes it.

        Raises OperationError (SIGNAL_NAME_INVALID, DATA_NOT_JSON), BadValue.
        """
        payload = as_json(data, what="a signal's data", code=DATA_NOT_JSON, by_alias=False)
        return self._decide(partial(deciding.signal, name=name, payload=payload), idempotency_key)

    def answer(
        self,
        node: str | None,
        data: JsonInput,
        *,
        iteration: int | None = None,
        by: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Answer the question of a node; None for the only question that is open.

        Raises OperationError (ANSWER_INVALID: it doesn't fit the question's schema, DATA_NOT_JSON),
        Refused (HUMAN_REQUEST_UNKNOWN, HUMAN_REQUEST_AMBIGUOUS), BadValue.
        """
        response = as_json(data, what="the answer", code=DATA_NOT_JSON, by_alias=False)
        act = partial(
            deciding.answer_human, response=response, node_id=node, iteration=iteration, by=by
        )
        return self._decide(act, idempotency_key)

    def pause(self) -> RunState:
        """Have nothing new begin; it is `paused` when what is in flight has ended.

        Pausing a paused run is fine. Gives the state that the run is in now.
        """
        with self._connections.lend() as opened:
            return RunState(deciding.pause(opened.connection, self.id)["status"])

    def cancel(self) -> RunState:
        """Cancel the run; what is in flight is stopped. Gives the state that the run is in now."""
        with self._connections.lend() as opened:
            return RunState(deciding.cancel(opened.connection, self.id)["status"])

    def resume(self, *, pinned: bool = False, accept_workflow_change: bool = False) -> Admitted:
        """Make a run go on that is paused or has ended; what failed or was cancelled runs again.

        `pinned` takes the code that the run has, whatever has become of its file;
        `accept_workflow_change` takes the file as it is now. Raises OperationError
        (RESUME_METADATA_MISMATCH without either of them when the file has changed), Refused
        (RUN_OWNED), BundleError, RenderError.
        """
        terms = Terms(pinned=pinned, accept_workflow_change=accept_workflow_change, force=True)
        with self._connections.lend() as opened:
            admitted = resume(opened.connection, opened.settings, self.id, terms)
        self._engines.lend(self.id)
        return admitted

    def _decide(self, act: Callable[..., Json], key: str | None) -> Receipt:
        """Store a decision; `act` takes a connection, the run's id and a `request_id`."""
        chosen = uuid4().hex if key is None else check_key(key)
        answer = self._connections.repeat(
            lambda opened: act(opened.connection, self.id, request_id=chosen)
        )
        self._engines.lend(self.id)
        return Receipt.of(answer)
