"""What a render and a plan know about a run: its rows, found by key, plus what a settling
frame has added to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from smithers.workflow.keys import NodeKey, Passes, loop_key, node_key
from smithers.workflow.snapshot import (
    ApprovalRow,
    HumanRow,
    NodeRow,
    RunRow,
    SignalRow,
    Snapshot,
    TimerRow,
)

Chain = tuple[str, ...]
"""The ids of the loops around a node, outermost first."""

Chains = Mapping[str, Chain]
"""The loops around each node that a frame has mounted, by the author's id."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The rows of a run by key. Frozen: a settling frame makes a new one for each pass."""

    now: datetime
    run: RunRow
    rows: Mapping[NodeKey, NodeRow]
    outputs: Mapping[NodeKey, Mapping[str, object]]
    approvals: Mapping[NodeKey, ApprovalRow]
    humans: Mapping[NodeKey, HumanRow]
    events: Mapping[NodeKey, object]
    signals: tuple[SignalRow, ...]
    timers: Mapping[NodeKey, TimerRow]
    chains: Chains
    last: Mapping[str, int] = field(compare=False, repr=False)
    _passes: dict[Chain, Passes] = field(compare=False, repr=False)

    def passes(self, chain: Chain) -> Passes:
        """Give the current pass of each loop of a chain: the highest that has a row."""
        known = self._passes.get(chain)
        if known is None:
            around = self.passes(chain[:-1])
            instance, _ = loop_key(chain[-1], around, 0)
            known = (*around, (chain[-1], self.last.get(instance, 0)))
            self._passes[chain] = known
        return known

    def key_of(self, author_id: str) -> NodeKey:
        """Give the key of a task or wait in the current passes of the loops around it.

        A node of which no frame knows where it stood is taken in the last pass that has a row.
        """
        chain = self.chains.get(author_id)
        if chain is None:
            return (author_id, self.last.get(author_id, 0))
        return node_key(author_id, self.passes(chain))

    def loop_key_of(self, loop_id: str) -> NodeKey:
        """Give the key of a loop's current pass."""
        instance, _ = loop_key(loop_id, self.passes(self.chains.get(loop_id, ())), 0)
        return (instance, self.last.get(instance, 0))

    def with_chains(self, chains: Chains) -> Facts:
        """Give the same rows, seen with these loops around nodes."""
        return replace(self, chains=chains, _passes={(): ()})

    def with_rows(
        self,
        rows: Mapping[NodeKey, NodeRow],
        outputs: Mapping[NodeKey, Mapping[str, object]],
        events: Mapping[NodeKey, object],
        signals: tuple[SignalRow, ...],
    ) -> Facts:
        """Give the facts after a pass."""
        return replace(
            self,
            rows=rows,
            outputs=outputs,
            events=events,
            signals=signals,
            last=_last(rows),
            _passes={(): ()},
        )


def facts_of(snapshot: Snapshot, chains: Chains) -> Facts:
    """Give a snapshot's facts; `chains` are the loops that earlier frames saw."""
    rows = {(row[0], row[1]): row for row in snapshot.nodes}
    return Facts(
        now=snapshot.now,
        run=snapshot.run,
        rows=rows,
        outputs=snapshot.outputs,
        approvals=snapshot.approvals,
        humans=snapshot.humans,
        events=snapshot.events,
        signals=snapshot.signals,
        timers=snapshot.timers,
        chains=chains,
        last=_last(rows),
        _passes={(): ()},
    )


def _last(rows: Mapping[NodeKey, NodeRow]) -> dict[str, int]:
    last: dict[str, int] = {}
    for node_id, iteration in rows:
        if iteration > last.get(node_id, -1):
            last[node_id] = iteration
    return last
