"""`smithers pause`, `cancel`, `resume`, `approve`, `deny`, `signal`: decide about runs.

In embedded mode a decision starts a detached engine that goes on with the run, unless
--no-resume is given.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import Any, TypeVar

import click

from smithers.cli.arguments import read_json
from smithers.cli.completing import complete_runs
from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import safe, show
from smithers.operations import deciding
from smithers.operations.errors import DATA_NOT_JSON
from smithers.operations.launching import wake
from smithers.operations.resolving import resolve
from smithers.operations.results import Engine, Outcome
from smithers.operations.resuming import Terms, resume
from smithers.operations.session import Session, session
from smithers.sql.rows import Json

F = TypeVar("F", bound=Callable[..., Any])


def no_resume_option(function: F) -> F:
    """Give a command `--no-resume`."""
    return click.option(
        "--no-resume", is_flag=True, help="Don't start a detached engine that goes on with the run."
    )(function)


def decision_options(function: F) -> F:
    """Give a command what approve and deny share."""
    for option in (
        click.option("--note", metavar="TEXT", help="Kept with the decision."),
        click.option("--by", metavar="NAME", help="Who decides; you, if not given."),
        click.option("--iteration", type=click.IntRange(0), default=0, help="Of a loop."),
        click.option("--node", metavar="ID", help="Which approval; needed when several are open."),
    ):
        function = option(function)
    return function


@click.command(short_help="Approve what a run asks for.")
@click.argument("run", shell_complete=complete_runs)
@decision_options
@no_resume_option
@json_option
@pass_invocation
def approve(invocation: Invocation, /, **options: Any) -> None:
    """Approve an open request of RUN; the run goes on."""
    _decide(invocation, deciding.approve, **options)


@click.command(short_help="Deny what a run asks for.")
@click.argument("run", shell_complete=complete_runs)
@decision_options
@no_resume_option
@json_option
@pass_invocation
def deny(invocation: Invocation, /, **options: Any) -> None:
    """Deny an open request of RUN; its node fails with APPROVAL_DENIED."""
    _decide(invocation, deciding.deny, **options)


def _decide(
    invocation: Invocation,
    decide: Callable[..., Json],
    *,
    run: str,
    node: str | None,
    iteration: int,
    by: str | None,
    note: str | None,
    no_resume: bool,
    as_json: bool,
) -> None:
    with session(invocation.settings(), purpose="decision") as opened:
        run = resolve(opened.connection, run)
        answer = decide(
            opened.connection,
            run,
            node_id=node,
            iteration=iteration,
            by=by or user_name(),
            note=note,
        )
        engine = wake_unless(opened, run, no_resume=no_resume)
    tell(Outcome(answer, engine), f"{safe(answer['node_id'])}: {answer['decision']}", as_json)


@click.command(short_help="Send a signal to a run.")
@click.argument("run", shell_complete=complete_runs)
@click.argument("name")
@click.option("--data", metavar="JSON|@file|-", help="What the signal carries.")
@no_resume_option
@json_option
@pass_invocation
def signal(
    invocation: Invocation,
    *,
    run: str,
    name: str,
    data: str | None,
    no_resume: bool,
    as_json: bool,
) -> None:
    """Put a signal NAME into the inbox of RUN; the first wait for it takes it."""
    payload = None if data is None else read_json(data, option="--data", code=DATA_NOT_JSON)
    with session(invocation.settings(), purpose="signal") as opened:
        run = resolve(opened.connection, run)
        answer = deciding.signal(opened.connection, run, name, payload)
        engine = wake_unless(opened, run, no_resume=no_resume)
    tell(Outcome(answer, engine), f"signal {safe(name)} sent", as_json)


@click.command(short_help="Pause a run: nothing new begins.")
@click.argument("run", shell_complete=complete_runs)
@json_option
@pass_invocation
def pause(invocation: Invocation, *, run: str, as_json: bool) -> None:
    """Pause RUN: nothing new begins, what is in flight may end."""
    with session(invocation.settings()) as opened:
        answer = deciding.pause(opened.connection, resolve(opened.connection, run))
    tell(Outcome(answer), _requested(answer, "paused", "pauses"), as_json)


@click.command(short_help="Cancel a run: what is in flight is stopped.")
@click.argument("run", shell_complete=complete_runs)
@json_option
@pass_invocation
def cancel(invocation: Invocation, *, run: str, as_json: bool) -> None:
    """Cancel RUN: nothing new begins, what is in flight is stopped."""
    with session(invocation.settings()) as opened:
        answer = deciding.cancel(opened.connection, resolve(opened.connection, run))
    tell(Outcome(answer), _requested(answer, "cancelled", "is cancelled"), as_json)


@click.command("resume", short_help="Go on with a run that is paused, parked or has ended.")
@click.argument("run", shell_complete=complete_runs)
@click.option("--pinned", is_flag=True, help="On the stored code, whatever the file says.")
@click.option("--accept-workflow-change", is_flag=True, help="On the changed file from here on.")
@no_resume_option
@json_option
@pass_invocation
def resume_command(
    invocation: Invocation,
    *,
    run: str,
    pinned: bool,
    accept_workflow_change: bool,
    no_resume: bool,
    as_json: bool,
) -> None:
    """Make RUN runnable again; what failed or was cancelled gets another try.

    A fleet, or in embedded mode a detached engine, goes on with it.
    """
    settings = invocation.settings()
    terms = Terms(pinned=pinned, accept_workflow_change=accept_workflow_change, force=True)
    with session(settings, purpose="resume") as opened:
        run = resolve(opened.connection, run)
        admitted = resume(opened.connection, settings, run, terms)
        engine = wake_unless(opened, run, no_resume=no_resume)
    owner = f": {safe(admitted.attached)} is at it" if admitted.attached else ""
    tell(Outcome(admitted.to_json(), engine), f"run {safe(run)} goes on{owner}", as_json)


def wake_unless(opened: Session, run: str, *, no_resume: bool) -> Engine | None:
    """Start an engine for a run that a decision has woken, if it is wanted and needed."""
    return None if no_resume else wake(opened, run)


def tell(outcome: Outcome, line: str, as_json: bool) -> None:  # noqa: FBT001  # always named `as_json`
    """Print what came of a decision."""
    if as_json:
        print_json(outcome.to_json())
        return
    show(line)
    if outcome.engine is not None:
        show(
            f"a detached engine goes on (pid {outcome.engine.pid}, log {safe(outcome.engine.log)})"
        )


def user_name() -> str | None:
    """Who decides, as far as the system knows."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _requested(answer: Json, done: str, ends: str) -> str:
    if answer["status"] == done:
        return f"run {safe(answer['run_id'])} is {done}"
    return f"run {safe(answer['run_id'])} {ends} when {answer['in_flight']} attempts have ended"
