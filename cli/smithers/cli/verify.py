"""`smithers verify`: check the invariants."""

from __future__ import annotations

import click

from smithers.cli.completing import complete_runs
from smithers.cli.failure import FAILED
from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import safe, show, show_table
from smithers.operations.resolving import resolve
from smithers.operations.session import session
from smithers.operations.verifying import invariants
from smithers.operations.verifying import verify as find_violations


@click.command(short_help="Check that the rows are as they must be.")
@click.argument("run", required=False, shell_complete=complete_runs)
@json_option
@pass_invocation
def verify(invocation: Invocation, *, run: str | None, as_json: bool) -> int:
    """Check the invariants of RUN, or of the whole database; exit code 1 when one is broken.

    It reads one snapshot and changes nothing, so it may run at any time.
    """
    with session(invocation.settings(), purpose="verify") as opened:
        run_id = None if run is None else resolve(opened.connection, run)
        found = find_violations(opened.connection, run_id=run_id)
    if as_json:
        print_json([violation.to_json() for violation in found])
    elif not found:
        show(f"{len(invariants())} invariants hold", style="green")
    else:
        show_table(
            ["INVARIANT", "RUN", "NODE", "PASS", "WHAT"],
            [[f.invariant, f.run_id, f.node_id, f.iteration, f.detail] for f in found],
        )
        show(f"{len(found)} violations{f' in run {safe(run)}' if run else ''}", style="red")
    return FAILED if found else 0
