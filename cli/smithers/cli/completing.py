"""What a shell is offered for RUN: never waits, never starts a database, never says anything."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

_OFFERED = 50
_SECONDS = 1.0


def complete_runs(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The newest runs whose id begins so, each with its workflow and state."""
    try:
        return _runs(ctx, incomplete)
    except Exception:  # noqa: BLE001  a completion that fails offers nothing
        return []


def _runs(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    from smithers.cli.invocation import Invocation
    from smithers.operations.looking import list_runs
    from smithers.operations.session import session_if_running

    settings = (ctx.find_object(Invocation) or Invocation()).settings()
    with session_if_running(settings, purpose="completion", seconds=_SECONDS) as opened:
        if opened is None:
            return []
        runs = list_runs(opened.connection, ended=True, limit=_OFFERED)
    return [
        CompletionItem(each.run_id, help=f"{each.run['workflow']}: {each.run['status']}")
        for each in runs
        if each.run_id.startswith(incomplete)
    ]
