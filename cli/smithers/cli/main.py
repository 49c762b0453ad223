"""The entry point of the smithers command, and the table of its subcommands."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from smithers.cli.invocation import Invocation
from smithers.cli.lazy import LazyGroup

# name → (module:attribute, one line of help); in the order of the help.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "demo": (
        "smithers.cli.demo:demo",
        "See it work: a real run on your repository, killed three times.",
    ),
    "init": ("smithers.cli.init:init", "Make a project: a workflow, its test, editor settings."),
    "up": ("smithers.cli.up:up", "Start or resume a run of a workflow, and follow it."),
    "ps": ("smithers.cli.ps:ps", "List runs."),
    "status": ("smithers.cli.look:status", "Show one run: its nodes, what it waits for."),
    "why": ("smithers.cli.look:why", "Say why a run is where it is, and the next command."),
    "node": (
        "smithers.cli.node:node",
        "Show one node: its attempts, what it waits for, its output.",
    ),
    "logs": ("smithers.cli.logs:logs", "Print what attempts printed."),
    "output": ("smithers.cli.look:output", "Print what a run or a node has made."),
    "events": ("smithers.cli.look:events", "Print the log of a run."),
    "graph": ("smithers.cli.look:graph", "Show the tree that a workflow would begin with."),
    "lint": (
        "smithers.cli.lint:lint",
        "Find unstable ids, impure renders, wrong parameters.",
    ),
    "approve": ("smithers.cli.decide:approve", "Approve what a run asks for."),
    "deny": ("smithers.cli.decide:deny", "Deny what a run asks for."),
    "signal": ("smithers.cli.decide:signal", "Send a signal to a run."),
    "human": ("smithers.cli.human:human", "List and answer questions to people."),
    "pause": ("smithers.cli.decide:pause", "Pause a run: nothing new begins."),
    "cancel": ("smithers.cli.decide:cancel", "Cancel a run: what is in flight is stopped."),
    "resume": (
        "smithers.cli.decide:resume_command",
        "Go on with a run that is paused or has ended.",
    ),
    "verify": ("smithers.cli.verify:verify", "Check that the rows are as they must be."),
    "doctor": (
        "smithers.cli.doctor:doctor",
        "Check database, schema, clock, disk, git, agents; say what to mend.",
    ),
    "scheduler": (
        "smithers.cli.scheduler:scheduler",
        "Run a scheduler: render runs, decide what may run next.",
    ),
    "worker": (
        "smithers.cli.worker:worker",
        "Run a worker: claim tasks and run them in child processes.",
    ),
    "supervise": (
        "smithers.cli.supervise:supervise",
        "Run a supervisor: give back what dead processes held.",
    ),
    "down": ("smithers.cli.down:down", "Stop everything of this project on this host."),
    "engine": ("smithers.cli.engine:engine", ""),
    "migrate": ("smithers.cli.migrate:migrate", "Bring the database to this release."),
    "config": ("smithers.cli.config:config", "Show the settings and where each came from."),
    "completions": (
        "smithers.cli.completions:completions",
        "Print the completion script of a shell.",
    ),
    "db": ("smithers.cli.db:db", "Start, stop, dump, restore the database; open psql."),
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="smithers-fleet", prog_name="smithers")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    help="The .smithers folder (SMITHERS_HOME; default: the nearest one upward).",
)
@click.option("--log-level", help="debug, info, warning or error (SMITHERS_LOG_LEVEL).")
@click.pass_context
def smithers(ctx: click.Context, home: Path | None, log_level: str | None) -> None:
    """Durable workflows for coding agents.

    The database is SMITHERS_DATABASE_URL if that is set, else an embedded Postgres in the
    nearest .smithers folder.
    """
    given = {"home": home, "log_level": log_level}
    ctx.obj = Invocation({name: value for name, value in given.items() if value is not None})


def main() -> None:
    """Run the command line of this process and end it by the exit code."""
    from smithers.cli.terminal import open_standard_streams

    open_standard_streams()
    if "_SMITHERS_COMPLETE" in os.environ:
        smithers.main(prog_name="smithers")
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    # Taking the interpreter apart would be a tenth of what `smithers ps` takes.
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    A command ends by returning None (0) or its code, by `ctx.exit`, or by raising.
    """
    try:
        with smithers.make_context("smithers", list(arguments)) as context:
            code = smithers.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort
        from smithers.cli.failure import report

        return report(error, arguments)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
