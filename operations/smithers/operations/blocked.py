"""What a run waits for outside itself, each with the exact command that ends the wait. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Blocked:
    """One wait. `command` is None when time ends it and somebody lives to see to that."""

    reason: str
    node_id: str | None
    iteration: int | None
    message: str
    command: str | None = None
    since: str | None = None
    due_at: str | None = None


def blocked_by(run: Row, details: Row, *, revive: str | None = None) -> tuple[Blocked, ...]:
    """List the waits of a run that hasn't ended, those of people first.

    `revive` is the command that starts processes, given when none lives: time alone wakes nobody.
    """
    run_id = str(run["run_id"])
    found: list[Blocked] = []
    if run["pause_requested_at"] is not None:
        found.append(_pause(run_id, run))
    found += [_approval(run_id, row) for row in details["approvals"]]
    found += [_human(run_id, row) for row in details["humans"]]
    found += [_event(run_id, row, details["inbox"]) for row in _in(details, "waiting-event")]
    found += [_quota(row, revive) for row in _in(details, "waiting-quota")]
    found += [_timer(row, revive) for row in details["timers"]]
    ends = {(row["node_id"], row["iteration"]): row["error"] for row in details["failures"]}
    found += [_retry(row, ends, revive) for row in _in(details, "pending") if row["due_at"]]
    found += list(_queues(details["ready"]))
    return tuple(found)


def node_flags(row: Row) -> str:
    """Give the options that name a node in a command."""
    iteration = f" --iteration {row['iteration']}" if row["iteration"] else ""
    return f"--node {shlex.quote(str(row['node_id']))}{iteration}"


def revive_command(run: Row) -> str:
    """Give the command that starts processes for a run, if nobody serves the database."""
    run_id = shlex.quote(str(run["run_id"]))
    return f"smithers up {shlex.quote(str(run['path']))} --run-id {run_id} --resume"


def _in(details: Row, state: str) -> Iterable[Row]:
    return [row for row in details["nodes"] if row["state"] == state]


def _pause(run_id: str, run: Row) -> Blocked:
    words = (
        "it is paused" if run["status"] == "paused" else "it pauses when its attempts have ended"
    )
    command = f"smithers resume {shlex.quote(run_id)}"
    return Blocked("pause", None, None, words, command, run["pause_requested_at"])


def _approval(run_id: str, row: Row) -> Blocked:
    summary = f": {row['summary']}" if row["summary"] else ""
    command = f"smithers approve {shlex.quote(run_id)} {node_flags(row)}"
    return _wait("approval", row, f"{row['title']}{summary}", command, row["opened_at"])


def _human(run_id: str, row: Row) -> Blocked:
    command = f"smithers human answer {shlex.quote(run_id)} {node_flags(row)} --data '{{}}'"
    return _wait("human", row, row["prompt"], command, row["opened_at"])


def _event(run_id: str, row: Row, inbox: Iterable[Row]) -> Blocked:
    name = str((row["detail"] or {}).get("name", row["node_id"]))
    unfit = [str(signal["seq"]) for signal in inbox if signal["name"] == name]
    also = f" (signal {', '.join(unfit)} of that name doesn't fit its model)" if unfit else ""
    command = f"smithers signal {shlex.quote(run_id)} {shlex.quote(name)} --data '{{}}'"
    return _wait("event", row, f"the signal {name}{also}", command, None)


def _quota(row: Row, revive: str | None) -> Blocked:
    words = (row["error"] or {}).get("message") or "the quota of its agent is used up"
    return _wait("quota", row, words, revive, None)


def _timer(row: Row, revive: str | None) -> Blocked:
    words = "a timer, which nobody lives to fire" if revive else "a timer"
    return _wait("timer", row, words, revive, row["opened_at"])


def _retry(row: Row, ends: Mapping[tuple[str, int], Row | None], revive: str | None) -> Blocked:
    """An attempt that was given back leaves its reason with itself, not with its node."""
    why = (ends.get((row["node_id"], row["iteration"])) or row["error"] or {}).get("message")
    words = f"attempt {row['last_attempt'] + 1} begins when it is due"
    return _wait("retry", row, f"{words}; before: {why}" if why else words, revive, None)


def _queues(ready: Iterable[Row]) -> Iterator[Blocked]:
    for row in ready:
        limit = row["max_concurrency"]
        if row["paused"]:
            words = f"the queue {row['queue']} is paused ({row['tasks']} tasks of this run)"
            yield Blocked("queue", None, None, words, None, row["since"])
        elif limit is not None and row["in_use"] >= limit:
            words = f"the queue {row['queue']} is full: {row['in_use']} of {limit} in use"
            yield Blocked("queue", None, None, words, None, row["since"])


def _wait(reason: str, row: Row, message: str, command: str | None, since: str | None) -> Blocked:
    return Blocked(
        reason, row["node_id"], row["iteration"], message, command, since, row.get("due_at")
    )
