"""`smithers init`: a project to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from smithers.cli.invocation import json_option, print_json
from smithers.cli.terminal import safe, show
from smithers.operations.initialising import initialise


@click.command(short_help="Make a project: a workflow, its test, editor settings.")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@json_option
def init(folder: Path, *, as_json: bool) -> None:
    """Make a project with one workflow, its test and editor settings in DIR (default: here).

    Nothing that is there is overwritten, and nothing is left half-written.
    """
    made = initialise(folder)
    if as_json:
        print_json(made.to_json())
        return
    show(f"made {safe(made.folder)}: {', '.join(made.files)}")
    if folder != Path():
        show(f"  cd {safe(shlex.quote(str(folder)))}")
    show("  pytest")
    show("  smithers up triage.py --run-id first")
