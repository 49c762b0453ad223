"""`smithers lint`: what is wrong with a workflow, before it runs."""

from __future__ import annotations

import click

from smithers.cli.arguments import read_json
from smithers.cli.failure import FAILED
from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import safe, show
from smithers.operations.errors import INPUT_NOT_JSON


@click.command(short_help="Find unstable ids, impure renders, wrong parameters.")
@click.argument("file", metavar="FILE[:name]")
@click.option("--input", "document", metavar="JSON|@file|-", help="The run's input.")
@json_option
@pass_invocation
def lint(invocation: Invocation, *, file: str, document: str | None, as_json: bool) -> int:
    """Play the workflow in FILE on made-up outputs, several times, and say what is wrong with it.

    Nothing is run or stored. Without --input the defaults of the input model are taken. Exit code
    1 when there is an error; warnings and notes are none.
    """
    from smithers.operations.admission import parse_target
    from smithers.operations.linting import Level
    from smithers.operations.linting import lint as find

    read = None if document is None else read_json(document, option="--input", code=INPUT_NOT_JSON)
    target = parse_target(file)
    findings = find(invocation.settings(), target, read, given=document is not None)
    if as_json:
        print_json([each.to_json() for each in findings])
    else:
        styles = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "dim"}
        for each in findings:
            place = " ".join(safe(part) for part in (each.where, each.node_id) if part)
            head = f"{place}: " if place else ""
            words = f"{head}{each.level.value}[{each.code}]: {safe(each.message)}"
            show(words, style=styles[each.level])
            show(f"  fix: {safe(each.fix)}")
        if not findings:
            show("nothing found", style="green")
    return FAILED if any(each.level is Level.ERROR for each in findings) else 0
