"""What is killed in the demo, and when: each strike waits for a moment when it hurts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from smithers.operations.results import RunStatus
from smithers.process.identity import host_name
from smithers.process.procfs import Proc, processes

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Strike:
    """Who is killed (kinds of processes), when, and the words for it.

    `everything` takes `smithers up` and the embedded database along.
    """

    kinds: tuple[str, ...]
    moment: Callable[[RunStatus], bool]
    words: str
    everything: bool = False


def _named(seen: RunStatus, prefix: str, state: str) -> Sequence[Node]:
    return [
        node
        for node in seen.nodes
        if str(node["node_id"]).startswith(prefix) and node["state"] == state
    ]


def _inspecting(seen: RunStatus) -> bool:
    """Some are done, some are in flight."""
    done, flying = (_named(seen, "inspect:", state) for state in ("finished", "in-progress"))
    return bool(done and flying)


def _inspecting_again(seen: RunStatus) -> bool:
    """What the first strike interrupted runs again, or is done already."""
    again = [node for node in seen.nodes if node["abandoned"]]
    moved = all(node["state"] in {"in-progress", "finished"} for node in again)
    busy = any(node["state"] == "in-progress" for node in seen.nodes)
    return bool(again) and moved and busy


def _repairing(seen: RunStatus) -> bool:
    """The agent is at work, under a scheduler and a worker."""
    kinds = {process["kind"] for process in seen.processes}
    return bool(_named(seen, "repair", "in-progress")) and {"scheduler", "worker"} <= kinds


STRIKES: Final = (
    Strike(("worker",), _inspecting, "the worker"),
    Strike(("scheduler",), _inspecting_again, "the scheduler"),
    Strike(("scheduler", "worker", "supervisor"), _repairing, "everything", everything=True),
)


def victims(strike: Strike, seen: RunStatus, engine: int) -> list[Node]:
    """The living processes that a strike is for: those of this demo's own engine, no other's."""
    everybody = processes()
    return [
        row
        for row in seen.processes
        if row["kind"] in strike.kinds
        and row["host"] == host_name()
        and _descends(int(row["pid"]), engine, everybody)
    ]


def _descends(pid: int, ancestor: int, everybody: Mapping[int, Proc]) -> bool:
    found = everybody.get(pid)
    while found is not None and found.pid != ancestor:
        found = everybody.get(found.parent)
    return found is not None


def kill(pids: Sequence[int]) -> None:
    """SIGKILL to each; one that has ended by itself is no error."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
