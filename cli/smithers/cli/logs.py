"""`smithers logs`: what attempts printed."""

from __future__ import annotations

import json

import click

from smithers.cli.completing import complete_runs
from smithers.cli.invocation import Invocation, json_option, pass_invocation, plain, print_json
from smithers.cli.terminal import safe_lines, say, show
from smithers.operations.logs import AttemptLog, Wanted, follow_logs, read_logs
from smithers.operations.resolving import resolve
from smithers.operations.session import session


@click.command(short_help="Print what attempts printed.")
@click.argument("run", shell_complete=complete_runs)
@click.argument("node", required=False)
@click.option("--iteration", type=click.IntRange(0), help="Of a loop; all passes if not given.")
@click.option("--attempt", type=click.IntRange(1), help="All attempts if not given.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="The last N lines of each.")
@json_option
@pass_invocation
def logs(
    invocation: Invocation,
    *,
    run: str,
    node: str | None,
    iteration: int | None,
    attempt: int | None,
    follow: bool,
    tail: int | None,
    as_json: bool,
) -> None:
    """Print what the attempts of RUN, or of its NODE, printed; each line after its node's name.

    The files lie on the host that ran the attempt. With --json: a list of attempts with their
    lines, or with -f one object a line.
    """
    if node is None and iteration is not None:
        raise click.UsageError("--iteration needs a node")
    if follow and tail is not None:
        raise click.UsageError("--follow and --tail exclude each other")
    settings = invocation.settings()
    wanted = Wanted(node, iteration, attempt)
    with session(settings, purpose="logs") as opened:
        run_id = resolve(opened.connection, run)
        if follow:
            for line in follow_logs(opened.connection, settings.home, run_id, wanted):
                if as_json:
                    click.echo(json.dumps(line.to_json(), default=plain))
                else:
                    show(_line(line.node_id, line.iteration, line.line))
            return
        found = read_logs(opened.connection, settings.home, run_id, wanted, tail=tail)
    if as_json:
        print_json([each.to_json() for each in found])
        return
    for each in found:
        _show(each)


def _show(log: AttemptLog) -> None:
    if log.lines is None:
        where = f"ran on {log.host}, its log is there: {log.path}"
        say(f"attempt {log.attempt} of {log.node_id} {where}")
    for line in log.lines or []:
        show(_line(log.node_id, log.iteration, line))


def _line(node_id: str, iteration: int, line: str) -> str:
    name = f"{node_id} #{iteration}" if iteration else node_id
    return safe_lines(f"{name} | {line}")
