"""What `smithers up` does once its options are read: admit, follow, say how it ended."""

from __future__ import annotations

import shlex
from typing import Any

import click

from smithers.cli.failure import FAILED, PIPE_CLOSED
from smithers.cli.invocation import print_json
from smithers.cli.progress import Teller, telling
from smithers.cli.showing import show_end
from smithers.cli.terminal import safe, say
from smithers.operations.fleet import SLOTS
from smithers.operations.following import End
from smithers.operations.interrupts import interrupts
from smithers.operations.launching import launch_run
from smithers.operations.looking import status
from smithers.operations.nurseries import Nurseries
from smithers.operations.results import Admitted
from smithers.operations.session import session
from smithers.operations.up import EXIT_CODES, PARKED, Request, admit_run, follow_run
from smithers.operations.verdict import Verdict
from smithers.process.settings import Settings


def detach_run(settings: Settings, asked: dict[str, Any], *, park: bool, as_json: bool) -> int:
    """Leave the run to a detached engine; give the exit code."""
    request = Request(**asked)
    admitted, engine = launch_run(settings, request, park=park, slots=request.max_concurrency)
    if as_json:
        print_json({**admitted.to_json(), "pid": engine.pid, "log": engine.log})
    else:
        click.echo(f"run {safe(admitted.run_id)}")
        click.echo(f"log {safe(engine.log)}")
    return 0


def follow(
    settings: Settings,
    asked: dict[str, Any],
    children: Nurseries,
    *,
    park: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Follow the run to its end or park; give the exit code, with `strict` 1 for a degraded one."""
    request = Request(**asked)
    children.prepare()
    with interrupts() as stops:
        database, admitted = admit_run(settings, request, nursery=children.hosts())
        since = 0 if admitted.created else None
        slots = max(SLOTS, request.max_concurrency or 0)
        with telling(
            admitted.run_id, admitted.workflow, live=not as_json, on_broken=stops.stop.request
        ) as teller:
            _introduce(teller, admitted)
            end = follow_run(
                settings,
                database,
                admitted.run_id,
                teller,
                stops,
                nurseries=children,
                park=park,
                slots=slots,
                since=since,
            )
        if end is End.INTERRUPTED:
            _say_how_to_resume(admitted)
            return PIPE_CLOSED if teller.broken and stops.number is None else stops.exit_code
    with session(settings, purpose="up") as opened:
        seen = status(opened.connection, admitted.run_id)
    if as_json:
        print_json(seen.to_json())
    else:
        show_end(seen)
    if strict and seen.verdict is Verdict.DEGRADED:
        return FAILED
    return EXIT_CODES.get(seen.status, PARKED)


def _introduce(teller: Teller, admitted: Admitted) -> None:
    run, workflow = safe(admitted.run_id), safe(admitted.workflow)
    if admitted.attached:
        teller.say(f"run {run} of {workflow} is advanced by {safe(admitted.attached)}: following")
    elif admitted.created:
        teller.say(f"run {run} of {workflow}")
    else:
        teller.say(f"run {run} of {workflow} {'goes on' if admitted.resumed else 'is there'}")


def _say_how_to_resume(admitted: Admitted) -> None:
    words = [admitted.path, "--run-id", admitted.run_id, "--resume"]
    say(f"left; go on with: smithers up {safe(shlex.join(words))}")
