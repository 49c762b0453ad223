"""`smithers scheduler`: render runs and decide what may run next."""

from __future__ import annotations

import click

from smithers.cli.invocation import Invocation, pass_invocation
from smithers.observability.logs import configure_logs
from smithers.process.database import START_SECONDS, open_database


@click.command(short_help="Run a scheduler: render runs, decide what may run next.")
@click.option("--name", help="What logs and listings call it.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Serve /metrics and /healthz.")
@pass_invocation
def scheduler(invocation: Invocation, *, name: str | None, metrics_port: int | None) -> int:
    """Advance runs until SIGTERM or SIGINT. Any number of schedulers may run.

    Each run is advanced by one of them at a time. A second signal doesn't wait for renders.
    """
    from smithers.scheduler.main import run_scheduler

    settings = invocation.settings()
    configure_logs(settings.log_level)
    database = open_database(
        settings, application_name="smithers scheduler", deadline_seconds=START_SECONDS
    )
    return run_scheduler(settings, database, name=name, metrics_port=metrics_port)
