"""`smithers engine` (hidden): what `up --detach` and decisions about parked runs leave behind.

The order is a JSON document on standard input; the report goes to a pipe that is closed when
the run is admitted, or when it is clear why not.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from smithers.cli.failure import REFUSED
from smithers.cli.invocation import Invocation, pass_invocation
from smithers.cli.narration import Narrator
from smithers.operations.engine import serve
from smithers.operations.fleet import SLOTS
from smithers.operations.following import End
from smithers.operations.interrupts import Interrupts, interrupts
from smithers.operations.nurseries import Nurseries, nurseries
from smithers.operations.up import Request, admit_run, follow_run
from smithers.process.database import open_database
from smithers.process.settings import Settings
from smithers.sql.connect import Database
from smithers.sql.rows import Json
from smithers.workflow.errors import SmithersError


@click.command(hidden=True)
@click.option("--report-fd", type=int, required=True)
@click.option("--log", type=click.Path(path_type=Path), required=True)
@pass_invocation
def engine(invocation: Invocation, *, report_fd: int, log: Path) -> int:
    """Admit the ordered run, then serve the database while there is work."""
    for number in (signal.SIGPIPE, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    order = dict(json.loads(sys.stdin.buffer.read()))
    settings = invocation.settings()
    with nurseries(settings) as children:
        return _serve(settings, order, children, report_fd=report_fd, log=log)


def _serve(
    settings: Settings, order: Json, children: Nurseries, *, report_fd: int, log: Path
) -> int:
    children.prepare()
    try:
        database, run_id = _admit(settings, order, children, report_fd)
    except SmithersError as error:
        _report(report_fd, {"error": error.to_json()})
        return REFUSED
    with interrupts() as asked:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if run_id is not None:
            _follow(settings, database, run_id, order, asked, children=children)
        park = bool(order.get("park"))
        if not asked.stop:
            serve(settings, database, asked, log, children, park=park, say=_say)
        _say("the engine ends")
        return asked.exit_code if asked.stop else 0


def _admit(
    settings: Settings, order: Json, children: Nurseries, report_fd: int
) -> tuple[Database, str | None]:
    if order["request"] is None:
        database = open_database(settings, application_name="smithers engine")
        _report(report_fd, {"serving": True})
        return database, None
    database, admitted = admit_run(
        settings, Request.from_json(order["request"]), nursery=children.hosts()
    )
    _report(report_fd, {"admitted": admitted.to_json()})
    return database, admitted.run_id


def _follow(
    settings: Settings,
    database: Database,
    run_id: str,
    order: Json,
    asked: Interrupts,
    *,
    children: Nurseries,
) -> None:
    """Follow the run first, so that the log tells its story."""
    narrator = Narrator(run_id, sys.stdout)
    slots = order.get("slots") or SLOTS
    park = bool(order.get("park"))
    end = follow_run(
        settings, database, run_id, narrator, asked, nurseries=children, park=park, slots=slots
    )
    if end is not End.INTERRUPTED:
        _say(f"run {run_id}: {end.value}")


def _report(descriptor: int, document: Json) -> None:
    try:
        os.write(descriptor, json.dumps(document, default=str).encode())
    except OSError:
        pass  # nobody waits any more
    finally:
        os.close(descriptor)


def _say(line: str) -> None:
    now = datetime.now(UTC).strftime("%H:%M:%S")
    print(f"{now} {line}", flush=True)  # noqa: T201  # standard output is the log file
