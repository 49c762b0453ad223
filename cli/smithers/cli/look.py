"""`smithers ps`, `status`, `why`, `output`, `events`, `graph`: look at runs."""

from __future__ import annotations

import json
from typing import Any

import click

from smithers.cli.arguments import read_json
from smithers.cli.completing import complete_runs
from smithers.cli.failure import FAILED
from smithers.cli.invocation import (
    Invocation,
    json_option,
    pass_invocation,
    plain,
    print_json,
    strict_option,
)
from smithers.cli.showing import show_status, show_why
from smithers.cli.terminal import safe, safe_lines, show, when
from smithers.operations import looking, reading
from smithers.operations.errors import INPUT_NOT_JSON, RUN_ALREADY_ENDED, OperationError
from smithers.operations.resolving import resolve
from smithers.operations.results import EventLine
from smithers.operations.session import session
from smithers.operations.verdict import Verdict


@click.command(short_help="Show one run: its nodes, what it waits for.")
@click.argument("run", shell_complete=complete_runs)
@strict_option
@json_option
@pass_invocation
def status(invocation: Invocation, *, run: str, strict: bool, as_json: bool) -> int:
    """Show a run: state, verdict, nodes, and what it waits for with the command that helps."""
    with session(invocation.settings()) as opened:
        seen = looking.status(opened.connection, resolve(opened.connection, run))
    if as_json:
        print_json(seen.to_json())
    else:
        show_status(seen)
    return FAILED if strict and seen.verdict is Verdict.DEGRADED else 0


@click.command(short_help="Say why a run is where it is, and the next command.")
@click.argument("run", shell_complete=complete_runs)
@json_option
@pass_invocation
def why(invocation: Invocation, *, run: str, as_json: bool) -> int:
    """Say why a run doesn't go on, or how it ended, reason by reason.

    Of a run that has ended the exit code is 4 (RUN_ALREADY_ENDED): it is not on its way any more.
    """
    with session(invocation.settings()) as opened:
        answer = looking.why(opened.connection, resolve(opened.connection, run))
    if answer.ended:
        if not as_json:
            show_why(answer)
        raise OperationError(
            RUN_ALREADY_ENDED,
            f"run {answer.run_id} is {answer.status} already",
            details=json.loads(json.dumps(answer.to_json(), default=plain)),
            hint=f"smithers status {answer.run_id} shows how it ended",
        )
    if as_json:
        print_json(answer.to_json())
    else:
        show_why(answer)
    return 0


@click.command(short_help="Print what a run or a node has made.")
@click.argument("run", shell_complete=complete_runs)
@click.argument("node", required=False)
@click.option("--iteration", type=click.IntRange(0), help="Of a loop; the last pass if not given.")
@json_option
@pass_invocation
def output(
    invocation: Invocation, *, run: str, node: str | None, iteration: int | None, as_json: bool
) -> None:
    """Print the output of NODE as JSON, or of every finished node of RUN."""
    if node is None and iteration is not None:
        raise click.UsageError("--iteration needs a node")
    with session(invocation.settings()) as opened:
        run_id = resolve(opened.connection, run)
        if node is not None:
            value = reading.output(opened.connection, run_id, node, iteration=iteration).value
            print_json(value)
            return
        found = reading.outputs(opened.connection, run_id)
    if as_json:
        print_json([each.to_json() for each in found])
        return
    for each in found:
        name = f"{each.node_id} #{each.iteration}" if each.iteration else each.node_id
        show(f"{safe(name)}  {safe(json.dumps(each.value, ensure_ascii=False))}")


@click.command(short_help="Print the log of a run.")
@click.argument("run", shell_complete=complete_runs)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--since", type=click.IntRange(0), default=0, metavar="SEQ", help="Only later ones.")
@json_option
@pass_invocation
def events(invocation: Invocation, *, run: str, follow: bool, since: int, as_json: bool) -> None:
    """Print a run's events in order. With --json: a list, or with -f one object a line."""
    with session(invocation.settings(), purpose="events") as opened:
        run_id = resolve(opened.connection, run)
        if follow:
            for event in reading.follow_events(opened.connection, run_id, since=since):
                _show_event(event, as_json=as_json)
            return
        lines = list(reading.all_events(opened.connection, run_id, since=since))
    if as_json:
        print_json([line.to_json() for line in lines])
        return
    for line in lines:
        _show_event(line, as_json=False)


def _show_event(event: EventLine, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(event.to_json(), default=plain))
        return
    place = safe(event.node_id) if event.node_id is not None else ""
    passed = f" #{event.iteration}" if event.iteration else ""
    attempt = f" attempt {event.attempt}" if event.attempt else ""
    payload = safe(json.dumps(event.payload, ensure_ascii=False)) if event.payload else ""
    head = f"{event.seq:>5}  {when(event.at)}  {event.type}"
    show(f"{head}  {place}{passed}{attempt}  {payload}".rstrip())


@click.command(short_help="Show the tree that a workflow would begin with.")
@click.argument("file", metavar="FILE[:name]")
@click.option("--input", "document", metavar="JSON|@file|-", help="The run's input.")
@json_option
@pass_invocation
def graph(invocation: Invocation, *, file: str, document: str | None, as_json: bool) -> None:
    """Render FILE once, as a run on this input would begin, and show its tree. Writes nothing."""
    from smithers.operations.admission import graph as first_frame
    from smithers.operations.admission import parse_target

    read = None if document is None else read_json(document, option="--input", code=INPUT_NOT_JSON)
    frame = first_frame(invocation.settings(), parse_target(file), read)
    body = (frame.get("structure") or {}).get("body") or {}
    if as_json:
        print_json(frame)
        return
    for depth, key, entry in _walk(body, str(body.get("root", "")), 0):
        show(f"{'  ' * depth}{safe(_label(key, entry))}")


def _walk(body: dict[str, Any], key: str, depth: int) -> list[tuple[int, str, dict[str, Any]]]:
    entry = body.get("nodes", {}).get(key)
    if entry is None:
        return []
    found = [(depth, key, entry)]
    for child in entry.get("children", []):
        found += _walk(body, child, depth + 1)
    return found


def _label(key: str, entry: dict[str, Any]) -> str:
    cap = f" (at most {entry['cap']})" if entry.get("cap") else ""
    limit = f" (at most {entry['max']} passes)" if entry.get("max") else ""
    name = "" if key.startswith("@@") else f" {key}"
    return safe_lines(f"{entry['kind']}{name}{cap}{limit}")
