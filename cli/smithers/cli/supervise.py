"""`smithers supervise`: give back what dead processes held."""

from __future__ import annotations

from collections.abc import Sequence

import click

from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.observability.logs import configure_logs
from smithers.process.database import START_SECONDS, open_connection, open_database
from smithers.process.settings import Settings
from smithers.supervisor.duties import Repair
from smithers.supervisor.rounds import Policy, would_do


@click.command(short_help="Run a supervisor: give back what dead processes held.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--all", "everything", is_flag=True, help="All runs; so it is without any RUN.")
@click.option("--interval", type=click.FloatRange(min=0.05), help="Seconds between two looks.")
@click.option(
    "--stale-threshold",
    type=click.FloatRange(min=0),
    help="Seconds since the last heartbeat before an attempt counts as lost; at least a lease.",
)
@click.option("--dry-run", is_flag=True, help="Look once, say what would be repaired, and end.")
@click.option("--name", help="What logs and listings call it.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Serve /metrics and /healthz.")
@json_option
@pass_invocation
def supervise(
    invocation: Invocation,
    *,
    runs: Sequence[str],
    everything: bool,
    interval: float | None,
    stale_threshold: float | None,
    dry_run: bool,
    name: str | None,
    metrics_port: int | None,
    as_json: bool,
) -> int:
    """Look after all runs, or only after the attempts of those named, until SIGTERM or SIGINT.

    What is repaired: attempts and runs whose process is dead, rows that are due and were fired by
    nobody, process rows, and processes of this host that belong to nobody. Any number of
    supervisors may run.
    """
    if runs and everything:
        raise click.UsageError("--all and the name of a run exclude each other")
    settings = invocation.settings(supervisor_poll_seconds=interval)
    policy = _policy(settings, runs, stale_threshold)
    if dry_run:
        return _look_once(settings, policy, as_json=as_json)

    from smithers.supervisor.main import run_supervisor

    configure_logs(settings.log_level)
    database = open_database(
        settings, application_name="smithers supervisor", deadline_seconds=START_SECONDS
    )
    return run_supervisor(
        settings,
        database,
        policy,
        interval=settings.supervisor_poll_seconds,
        name=name,
        metrics_port=metrics_port,
    )


def _policy(settings: Settings, runs: Sequence[str], threshold: float | None) -> Policy:
    return Policy(
        lease=settings.lease_seconds,
        heartbeat=settings.heartbeat_seconds,
        poison=settings.poison_attempts,
        threshold=threshold,
        run_ids=frozenset(runs) if runs else None,
    )


def _look_once(settings: Settings, policy: Policy, *, as_json: bool) -> int:
    _, connection = open_connection(settings, application_name="smithers supervise --dry-run")
    with connection:
        repairs = would_do(connection, policy)
    if as_json:
        print_json([_document(repair) for repair in repairs])
        return 0
    for repair in repairs:
        click.echo(f"would repair {repair.duty}: {repair.what}")
    if not repairs:
        click.echo("nothing to repair")
    return 0


def _document(repair: Repair) -> dict[str, object]:
    return {"duty": repair.duty, "what": repair.what, **repair.details}
