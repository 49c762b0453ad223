"""`smithers ps`: list runs."""

from __future__ import annotations

import sys
import time
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.showing import show_runs
from smithers.cli.terminal import console, is_lively
from smithers.operations.looking import list_runs
from smithers.operations.results import RunSummary
from smithers.operations.session import session
from smithers.workflow.states import WAITING_RUNS, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 50
_WATCH_SECONDS = 2.0


@click.command(short_help="List runs.")
@click.option("--all", "everything", is_flag=True, help="Also those that have ended.")
@click.option(
    "--status",
    "wanted",
    metavar="STATE[,…]",
    help="Only those in these states; waiting means every kind of it.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help=f"At most N, the newest; {_SHOWN} if not given, with --json all.",
)
@click.option("--watch", is_flag=True, help="Look again every 2 s, until Ctrl-C; at a terminal.")
@json_option
@pass_invocation
def ps(
    invocation: Invocation,
    *,
    everything: bool,
    wanted: str | None,
    limit: int | None,
    watch: bool,
    as_json: bool,
) -> None:
    """List runs that have not ended, newest first."""
    statuses = None if wanted is None else frozenset(_states(wanted.split(",")))
    if watch and (as_json or not is_lively(sys.stdout)):
        raise click.UsageError("--watch draws on a terminal; elsewhere: smithers ps, again")
    shown = limit or (None if as_json else _SHOWN)
    while True:
        with session(invocation.settings()) as opened:
            runs = list_runs(
                opened.connection,
                ended=everything,
                statuses=statuses,
                limit=None if shown is None else shown + 1,
            )
        if as_json:
            print_json([run.to_json() for run in runs[:shown]])
            return
        if watch:
            console().clear()
        _show(runs, _SHOWN if shown is None else shown, asked=limit is not None)
        if not watch:
            return
        time.sleep(_WATCH_SECONDS)


def _show(runs: list[RunSummary], shown: int, *, asked: bool) -> None:
    show_runs(runs[:shown])
    if len(runs) > shown and not asked:
        click.echo(f"only the newest {shown}: --limit N shows more", err=True)


def _states(words: Iterable[str]) -> Iterable[RunStatus]:
    """Raises click.UsageError for a word that is no state."""
    known = [each.value for each in RunStatus]
    for word in (each.strip() for each in words):
        if word == "waiting":
            yield from WAITING_RUNS
        elif word in known:
            yield RunStatus(word)
        else:
            close = get_close_matches(word, known, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise click.UsageError(
                f"--status: {word!r} is no state{meant} (waiting, {', '.join(known)})"
            )
