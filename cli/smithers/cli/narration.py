"""Tell a run's story as it happens: a line for what people care about."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TextIO

from smithers.cli.terminal import console, safe, span, when
from smithers.operations.following import Attempt, Notice, Reader
from smithers.operations.results import EventLine
from smithers.workflow.states import NodeKind

_OLD_ENOUGH: Final = timedelta(seconds=2)
"""A start is told when the attempt goes on; that of a short one comes with its end."""

_NOTICES: Final = {
    Notice.FLEET_STARTED: "no fleet serves the database: starting one (its log: {})",
    Notice.FLEET_VANISHED: "the fleet that served the database is gone",
    Notice.WAITS_FOR_LEASE: "{}",
    Notice.DATABASE_AWAY: "the database is away, trying again: {}",
    Notice.DATABASE_BACK: "the database is back",
    Notice.BEGUN_BEFORE: "{} nodes were finished before",
    Notice.LEAVING: "leaving: what is in flight is given back (Ctrl-C again hurries)",
}


def notice_line(notice: Notice, detail: str) -> str:
    """Say what happens around a run."""
    return _NOTICES[notice].format(safe(detail))


class Narrator:
    """An audience that prints to a stream; silent when nobody reads it any more.

    `on_broken` is called once when that is so.
    """

    def __init__(
        self, run_id: str, stream: TextIO, on_broken: Callable[[], None] = lambda: None
    ) -> None:
        self._run_id = run_id
        self._on_broken = on_broken
        self._console = console(stream)
        self._started: dict[tuple[str | None, int | None, int | None], datetime] = {}
        self._kinds: dict[tuple[str | None, int | None], str] = {}
        self.broken = False

    def event(self, event: EventLine) -> None:
        """Tell of an entry of the log, if it is worth it."""
        told = _TELLERS.get(event.type)
        for node_id, iteration, kind in event.payload.get("mounted") or ():
            self._kinds[(node_id, iteration)] = kind
        if event.type == "attempt-started":
            self._start(event)
        elif told is not None:
            self._say(*told(self, event))

    def notice(self, notice: Notice, detail: str) -> None:
        """Tell of what happens around the run."""
        self._say(notice_line(notice, detail), "dim")

    def looked(self, claimed: Sequence[Attempt], read: Reader) -> None:
        """Nothing to tell: what has happened is in the log."""

    def say(self, line: str, style: str = "") -> None:
        """Tell something else."""
        self._say(line, style)

    def _say(self, line: str, style: str = "") -> None:
        if self.broken or not line:
            return
        try:
            self._console.print(line, style=style or None, soft_wrap=True)
        except (OSError, ValueError):
            self.broken = True
            self._on_broken()

    def _start(self, event: EventLine) -> None:
        self._started[(event.node_id, event.iteration, event.attempt)] = event.at
        if datetime.now(UTC) - event.at > _OLD_ENOUGH:
            self._say(f"{_name(event)} started{_attempt(event)}")

    def finished(self, event: EventLine) -> tuple[str, str]:
        """A task has its result."""
        began = self._started.pop((event.node_id, event.iteration, event.attempt), None)
        took = f" ({span(event.at - began)})" if began else ""
        return f"{_name(event)} finished{_attempt(event)}{took}", "green"

    def approval(self, event: EventLine) -> tuple[str, str]:
        """Somebody is asked."""
        run, kind = shlex.quote(self._run_id), self._kinds.get((event.node_id, event.iteration))
        command = f"smithers approve {run} {_flags(event)}"
        if kind is None:  # it was mounted before we came
            command = f"smithers why {run}"
        elif kind == NodeKind.HUMAN:
            command = f"smithers human answer {run} {_flags(event)} --data '{{}}'"
        return f"{_name(event)} waits for a person: {safe(command)}", "yellow"

    def signal(self, event: EventLine) -> tuple[str, str]:
        """A signal is awaited."""
        name = str((event.payload.get("detail") or {}).get("name", event.node_id))
        command = f"smithers signal {shlex.quote(self._run_id)} {shlex.quote(name)}"
        return f"{_name(event)} waits for an event: {safe(command)}", "yellow"


def _name(event: EventLine) -> str:
    name = safe(event.node_id or "the run")
    return f"{name} #{event.iteration}" if event.iteration else name


def _flags(event: EventLine) -> str:
    iteration = f" --iteration {event.iteration}" if event.iteration else ""
    return f"--node {shlex.quote(str(event.node_id))}{iteration}"


def _attempt(event: EventLine) -> str:
    return f" in attempt {event.attempt}" if event.attempt and event.attempt > 1 else ""


def _error(event: EventLine) -> str:
    error = event.payload.get("error") or {}
    message = " ".join(str(error.get("message") or "").split())
    code = error.get("code")
    return safe(f": {code}: {message}" if code else message and f": {message}")


def _failed(_: Narrator, event: EventLine) -> tuple[str, str]:
    due = event.payload.get("due_at")
    again = f"; next try {when(due)}" if due else ""
    return f"{_name(event)} failed{_attempt(event)}{_error(event)}{again}", "red"


def _lost(_: Narrator, event: EventLine) -> tuple[str, str]:
    return f"{_name(event)} lost its worker{_attempt(event)}", "red"


def _plain(words: str, style: str = "") -> Callable[[Narrator, EventLine], tuple[str, str]]:
    def tell(_: Narrator, event: EventLine) -> tuple[str, str]:
        return f"{_name(event)} {words}{_error(event)}", style

    return tell


def _decided(_: Narrator, event: EventLine) -> tuple[str, str]:
    payload = event.payload
    by = f" by {payload['by']}" if payload.get("by") else ""
    note = f": {payload['note']}" if payload.get("note") else ""
    return f"{_name(event)} {safe(payload.get('decision'))}{safe(by + note)}", ""


def _received(_: Narrator, event: EventLine) -> tuple[str, str]:
    return f"signal {safe(event.payload.get('name'))} received", ""


def _settled(_: Narrator, event: EventLine) -> tuple[str, str]:
    """A wait or a loop is over; a loop that begins another pass isn't worth a line."""
    if (event.payload.get("detail") or {}).get("reason") == "again":
        return "", ""
    return f"{_name(event)} finished", "green"


def _status(_: Narrator, event: EventLine) -> tuple[str, str]:
    status = str(event.payload.get("status"))
    return (f"the run is {status}{_error(event)}", "red") if status == "failed" else ("", "")


_TELLERS: Final[dict[str, Callable[[Narrator, EventLine], tuple[str, str]]]] = {
    "attempt-finished": Narrator.finished,
    "attempt-failed": _failed,
    "attempt-abandoned": _lost,
    "attempt-cancelled": _plain("was cancelled"),
    "attempt-released": _plain("was given back"),
    "attempt-parked": _plain("waits for its quota", "yellow"),
    "node-finished": _settled,
    "node-failed": _plain("failed", "red"),
    "node-skipped": _plain("was skipped"),
    "node-waiting-approval": Narrator.approval,
    "node-waiting-event": Narrator.signal,
    "node-waiting-timer": _plain("waits for its time"),
    "approval-decided": _decided,
    "human-answered": _plain("was answered"),
    "signal-received": _received,
    "timer-fired": _plain("is due"),
    "wait-expired": _plain("waited too long", "yellow"),
    "run-resumed": _plain("goes on"),
    "run-pause-requested": _plain("is asked to pause"),
    "run-cancel-requested": _plain("is asked to cancel"),
    "run-reclaimed": _plain("was taken from a dead scheduler"),
    "run-status": _status,
}
