"""The outputs and errors of nodes, as a test reads them by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast, overload

from pydantic import BaseModel

from smithers.testing.errors import NODE_UNKNOWN, HarnessError, error_of
from smithers.testing.needs import value_of
from smithers.testing.player import Player
from smithers.testing.show import explanation, tree_text
from smithers.workflow.context import event_fields
from smithers.workflow.errors import OUTPUT_MISSING, SmithersError
from smithers.workflow.keys import NodeKey, author_id
from smithers.workflow.models import load
from smithers.workflow.nodes import Ref
from smithers.workflow.states import NodeKind, NodeState

T = TypeVar("T", bound=BaseModel)


class Results:
    """What the nodes of a run have given. An id is an author's, or with the passes of outer loops
    (`edit@@outer=1`).
    """

    def __init__(self, player: Player) -> None:
        self._player = player
        self._store = player.store

    @overload
    def output(self, node: Ref[T], /, *, iteration: int | None = None) -> T: ...
    @overload
    def output(self, node: str, model: type[T], /, *, iteration: int | None = None) -> T: ...
    @overload
    def output(self, node: str, /, *, iteration: int | None = None) -> Any: ...
    def output(
        self,
        node: Ref[BaseModel] | str,
        model: type[BaseModel] | None = None,
        /,
        *,
        iteration: int | None = None,
    ) -> object:
        """Give the output of a task or wait as its model, read back from what is stored.

        Of the last pass that has one, unless `iteration` names another. With `model` the type is
        known to type checkers. Raises HarnessError (OUTPUT_MISSING, NODE_UNKNOWN).
        """
        node_id = node if isinstance(node, str) else node.id
        keys = self._keys(node_id, iteration)
        ref, _, _ = self._store.memo.known[author_id(node_id)]
        for key in reversed(keys):
            fields = self._fields(key, ref)
            if fields is not None:
                return load(model or ref.output, fields)
        shown = ", ".join(f"{k[0]}[{k[1]}] is {self._store.nodes[k].state.value}" for k in keys)
        raise HarnessError(
            OUTPUT_MISSING,
            f"{node_id!r} has no output: {shown}\n{self.explain()}",
            details={"node_id": node_id, "iteration": iteration},
        )

    def error_of(self, node_id: str, *, iteration: int | None = None) -> SmithersError | None:
        """Why a node failed, or its last attempt; None if it did not. Raises HarnessError."""
        return error_of(self._store.nodes[self._keys(node_id, iteration)[-1]].error)

    def tree(self) -> str:
        """Give the tree of the last frame as indented text, with states."""
        return tree_text(self._store)

    def explain(self) -> str:
        """Give status, error, tree, waits and calls: what to print when an assertion fails."""
        player = self._player
        unused = [*player.agents.unused(), *player.tasks.unused(), *player.people.unused()]
        return explanation(self._store, player.calls, unused)

    def _fields(self, key: NodeKey, ref: Ref[BaseModel]) -> Mapping[str, object] | None:
        value = value_of(self._store, key, ref.kind)
        if ref.kind is NodeKind.EVENT and self._store.nodes[key].state is NodeState.FINISHED:
            value = event_fields(ref.output, value)
        return cast("Mapping[str, object] | None", value)

    def _keys(self, node_id: str, iteration: int | None) -> list[NodeKey]:
        found = [
            key
            for key in self._store.nodes
            if node_id in names_of(key[0]) and iteration in (None, key[1])
        ]
        if found:
            return sorted(found, key=lambda key: key[1]) if node_id == found[0][0] else found
        passed = "" if iteration is None else f" in pass {iteration}"
        raise HarnessError(
            NODE_UNKNOWN,
            f"no frame has mounted {node_id!r}{passed}\n{self.explain()}",
            details={"node_id": node_id, "iteration": iteration},
        )


def names_of(node_id: str) -> tuple[str, str]:
    """Give the ids by which a test may name a node."""
    return (node_id, author_id(node_id))
