"""`smithers human list|answer`: questions to people."""

from __future__ import annotations

import click

from smithers.cli.arguments import read_json
from smithers.cli.completing import complete_runs
from smithers.cli.decide import no_resume_option, tell, user_name, wake_unless
from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import ago, safe, show, show_table
from smithers.operations import deciding
from smithers.operations.errors import DATA_NOT_JSON
from smithers.operations.resolving import resolve
from smithers.operations.results import Outcome
from smithers.operations.session import session


@click.group(short_help="List and answer questions to people.")
def human() -> None:
    """Questions that runs ask people."""


@human.command("list", short_help="List open questions.")
@click.argument("run", required=False, shell_complete=complete_runs)
@json_option
@pass_invocation
def list_command(invocation: Invocation, *, run: str | None, as_json: bool) -> None:
    """List open questions, oldest first; of RUN if it is named."""
    with session(invocation.settings()) as opened:
        run_id = None if run is None else resolve(opened.connection, run)
        found = deciding.list_human(opened.connection, run_id=run_id)
    if as_json:
        print_json(found)
    elif not found:
        show("no questions are open")
    else:
        show_table(
            ["RUN", "NODE", "PASS", "QUESTION", "ASKED"],
            [
                [f["run_id"], f["node_id"], f["iteration"], f["prompt"], ago(f["opened_at"])]
                for f in found
            ],
        )


@human.command(short_help="Answer a question.")
@click.argument("run", shell_complete=complete_runs)
@click.option("--node", metavar="ID", help="Which question; needed when several are open.")
@click.option("--iteration", type=click.IntRange(0), default=0, help="Of a loop.")
@click.option("--data", required=True, metavar="JSON|@file|-", help="The answer.")
@click.option("--by", metavar="NAME", help="Who answers; you, if not given.")
@no_resume_option
@json_option
@pass_invocation
def answer(
    invocation: Invocation,
    *,
    run: str,
    node: str | None,
    iteration: int,
    data: str,
    by: str | None,
    no_resume: bool,
    as_json: bool,
) -> None:
    """Answer an open question of RUN; the run goes on."""
    response = read_json(data, option="--data", code=DATA_NOT_JSON)
    with session(invocation.settings(), purpose="answer") as opened:
        run = resolve(opened.connection, run)
        result = deciding.answer_human(
            opened.connection,
            run,
            response,
            node_id=node,
            iteration=iteration,
            by=by or user_name(),
        )
        engine = wake_unless(opened, run, no_resume=no_resume)
    tell(Outcome(result, engine), f"{safe(result['node_id'])}: answered", as_json)
