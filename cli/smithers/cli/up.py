"""`smithers up`: start a run or resume one, and follow it."""

from __future__ import annotations

import shlex
from typing import Any

import click

from smithers.cli.arguments import normalise_resume, read_json
from smithers.cli.failure import PIPE_CLOSED
from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.progress import Teller, telling
from smithers.cli.showing import show_end
from smithers.cli.terminal import safe, say
from smithers.operations.errors import INPUT_NOT_JSON
from smithers.operations.fleet import SLOTS
from smithers.operations.following import End
from smithers.operations.interrupts import interrupts
from smithers.operations.launching import launch_run
from smithers.operations.looking import status
from smithers.operations.results import Admitted
from smithers.operations.session import session
from smithers.operations.up import EXIT_CODES, PARKED, Request, admit_run, follow_run
from smithers.process.settings import Settings


class UpCommand(click.Command):
    """A command whose `--resume` takes an optional true or false."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse after `--resume` has been made a flag."""
        return super().parse_args(ctx, normalise_resume(args))


@click.command(cls=UpCommand, short_help="Start or resume a run of a workflow, and follow it.")
@click.argument("file", metavar="FILE[:name]")
@click.option("--run-id", metavar="ID", help="Chosen by you; made up when not given.")
@click.option("--input", "document", metavar="JSON|@file|-", help="The run's input.")
@click.option("--resume", is_flag=True, help="Go on with the run --run-id (also: true, false).")
@click.option("-d", "--detach", is_flag=True, help="Return when the run is admitted.")
@click.option("--max-concurrency", type=click.IntRange(1), metavar="N", help="Tasks at a time.")
@click.option("--park", is_flag=True, help="Leave when the run only waits for time, too.")
@click.option("--pinned", is_flag=True, help="Resume on the stored code, whatever the file says.")
@click.option(
    "--accept-workflow-change", is_flag=True, help="Resume on the changed file from here on."
)
@json_option
@pass_invocation
def up(
    invocation: Invocation,
    /,
    *,
    file: str,
    document: str | None,
    detach: bool,
    park: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Start a run of the workflow in FILE and follow it; Ctrl-C leaves it resumable.

    When no fleet serves the database, one runs here for as long as there is work. Exit codes: 0
    done, 1 failed, 2 cancelled, 3 parked (it waits for a person, an event or, with --park, for
    time), 4 refused: nothing was written.
    """
    settings = invocation.settings()
    read = None if document is None else read_json(document, option="--input", code=INPUT_NOT_JSON)
    request = Request(file=file, document=read, given_input=document is not None, **options)
    if detach:
        return _detach(settings, request, park=park, as_json=as_json)
    return _follow(settings, request, park=park, as_json=as_json)


def _detach(settings: Settings, request: Request, *, park: bool, as_json: bool) -> int:
    admitted, engine = launch_run(settings, request, park=park, slots=request.max_concurrency)
    if as_json:
        print_json({**admitted.to_json(), "pid": engine.pid, "log": engine.log})
    else:
        click.echo(f"run {safe(admitted.run_id)}")
        click.echo(f"log {safe(engine.log)}")
    return 0


def _follow(settings: Settings, request: Request, *, park: bool, as_json: bool) -> int:
    with interrupts() as asked:
        database, admitted = admit_run(settings, request)
        since = 0 if admitted.created else None
        slots = max(SLOTS, request.max_concurrency or 0)
        with telling(
            admitted.run_id, admitted.workflow, live=not as_json, on_broken=asked.stop.request
        ) as teller:
            _introduce(teller, admitted)
            end = follow_run(
                settings,
                database,
                admitted.run_id,
                teller,
                asked,
                park=park,
                slots=slots,
                since=since,
            )
        if end is End.INTERRUPTED:
            _say_how_to_resume(admitted)
            return PIPE_CLOSED if teller.broken and asked.number is None else asked.exit_code
    with session(settings, purpose="up") as opened:
        seen = status(opened.connection, admitted.run_id)
    if as_json:
        print_json(seen.to_json())
    else:
        show_end(seen)
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
