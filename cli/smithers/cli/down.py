"""`smithers down`: stop everything of this project on this host."""

from __future__ import annotations

import sys

import click

from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import is_terminal, safe, show
from smithers.operations.shutting import GRACE_SECONDS, Down, refuse_foreign, shut_down


@click.command(short_help="Stop everything of this project on this host.")
@click.option("--purge", is_flag=True, help="Remove the .smithers folder too, runs and all.")
@click.option("--yes", is_flag=True, help="Don't ask; nor is asked where there is no terminal.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=GRACE_SECONDS,
    show_default=True,
    help="Seconds that processes get to end before they are killed.",
)
@json_option
@pass_invocation
def down(invocation: Invocation, *, purge: bool, yes: bool, grace: float, as_json: bool) -> None:
    """End the processes of this project on this host, then its embedded database.

    Runs stay as they are and can be resumed; with --purge nothing stays. A database that was
    given (SMITHERS_DATABASE_URL) is somebody else's and goes on.
    """
    settings = invocation.settings()
    if purge:
        refuse_foreign(settings.home)
        if settings.home.exists() and not yes and is_terminal(sys.stdin):
            click.confirm(f"Remove {safe(settings.home)} with all its runs?", abort=True, err=True)
    done = shut_down(settings, grace=grace, purge=purge)
    if as_json:
        print_json(done.to_json())
    else:
        _tell(done, embedded=settings.database_url is None)


def _tell(done: Down, *, embedded: bool) -> None:
    for pid in done.stopped:
        show(f"stopped process {pid}")
    for pid in done.killed:
        show(f"killed process {pid}, which didn't stop")
    if done.database_stopped:
        show("stopped the database")
    elif not embedded:
        show("the database is a given one: it goes on")
    for row in done.elsewhere:
        show(f"{safe(row['kind'])} {row['pid']} on {safe(row['host'])} goes on")
    if done.purged:
        show(f"removed {safe(done.purged)}")
    if not (done.stopped or done.killed or done.database_stopped or done.purged):
        show("nothing runs here")
