"""`smithers up`: start a run or resume one, and follow it."""

from __future__ import annotations

from typing import Any

import click

from smithers.cli.arguments import normalise_resume, read_json
from smithers.cli.invocation import Invocation, json_option, pass_invocation, strict_option
from smithers.operations.errors import INPUT_NOT_JSON
from smithers.operations.nurseries import nurseries


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
@strict_option
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
    strict: bool,
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
    asked = {"file": file, "document": read, "given_input": document is not None, **options}
    if detach:
        from smithers.cli.up_work import detach_run

        return detach_run(settings, asked, park=park, as_json=as_json)
    with nurseries(settings) as children:
        # They import what they need while this process does.
        from smithers.cli.up_work import follow

        return follow(settings, asked, children, park=park, strict=strict, as_json=as_json)
