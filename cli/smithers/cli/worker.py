"""`smithers worker`: claim tasks and run them."""

from __future__ import annotations

import click

from smithers.cli.invocation import Invocation, pass_invocation
from smithers.observability.logs import configure_logs
from smithers.process.database import START_SECONDS, open_database


@click.command(short_help="Run a worker: claim tasks and run them in child processes.")
@click.option(
    "--slots",
    type=click.IntRange(1, 1024),
    default=4,
    show_default=True,
    help="Tasks that run at a time.",
)
@click.option(
    "--queues",
    default="default",
    show_default=True,
    help="Queues to take tasks from, by comma, the most important first.",
)
@click.option("--name", help="What logs and listings call it.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds that running tasks get to finish after SIGTERM.",
)
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Serve /metrics and /healthz.")
@pass_invocation
def worker(
    invocation: Invocation,
    *,
    slots: int,
    queues: str,
    name: str | None,
    grace: float,
    metrics_port: int | None,
) -> int:
    """Run tasks until SIGTERM or SIGINT. Any number of workers may run, on any machines.

    Running tasks get time to finish; what isn't done then is given back to the others. A second
    signal doesn't wait.
    """
    from smithers.worker.main import run_worker

    names = [queue.strip() for queue in queues.split(",") if queue.strip()]
    if not names:
        raise click.UsageError("--queues names no queue")
    settings = invocation.settings()
    configure_logs(settings.log_level)
    database = open_database(
        settings, application_name="smithers worker", deadline_seconds=START_SECONDS
    )
    return run_worker(
        settings,
        database,
        slots=slots,
        queues=names,
        name=name,
        metrics_port=metrics_port,
        grace=grace,
    )
