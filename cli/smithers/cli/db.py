"""`smithers db`: the embedded database, and psql and dumps of whichever database is used."""

from __future__ import annotations

import os
import sys

import click
import psycopg

from smithers.cli.db_dump import dump, restore
from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import safe, show
from smithers.process.database import locate_database, open_database, refuse_malformed_url
from smithers.process.settings import Settings
from smithers.sql import schema
from smithers.sql.archive import connection_environment, find_client
from smithers.sql.connect import Database, connect
from smithers.sql.database_errors import DatabaseUnavailable, SchemaError
from smithers.sql.embedded import ServerStatus, server_status, stop_server
from smithers.workflow.errors import SmithersError

IDLE_SECONDS = 60


@click.group(short_help="Start, stop, dump, restore the database; open psql.")
def db() -> None:
    """The embedded Postgres of this project, and psql and dumps of whichever database is used.

    Commands start it when they need it; it goes on until it is stopped.
    """


db.add_command(dump)
db.add_command(restore)


@db.command()
@click.option(
    "--stop-when-idle",
    type=click.FloatRange(0, 604_800),
    is_flag=False,
    flag_value=str(IDLE_SECONDS),
    metavar="[SECONDS]",
    help=f"Stop it when nobody was connected for so long ({IDLE_SECONDS} if not said; 0: never).",
)
@json_option
@pass_invocation
def start(invocation: Invocation, *, stop_when_idle: float | None, as_json: bool) -> None:
    """Start the embedded database, made first if there is none.

    One that stops when idle is started again by the next command that needs it, and stays so until
    `smithers db stop` or --stop-when-idle 0. While it is stopped no timer fires, as without an
    engine.
    """
    settings = _embedded(invocation, db_stop_when_idle=stop_when_idle)
    open_database(settings, application_name="smithers db")
    status = server_status(settings.home)
    if as_json:
        print_json(status)
    else:
        show(safe(f"running (pid {status.pid}): {status.url}"))
        if status.stop_when_idle:
            show(f"it stops when nobody was connected for {status.stop_when_idle:g} s")


@db.command()
@json_option
@pass_invocation
def stop(invocation: Invocation, *, as_json: bool) -> None:
    """Stop the embedded database; open transactions are rolled back."""
    settings = _embedded(invocation)
    stopped = stop_server(settings.home)
    if as_json:
        print_json({"stopped": stopped, "data": settings.home / "pg"})
    else:
        show("stopped" if stopped else "it was not running")


@db.command()
@json_option
@pass_invocation
def status(invocation: Invocation, *, as_json: bool) -> int:
    """Say whether the database answers and fits this release; exit 1 if it doesn't answer."""
    settings = invocation.settings()
    facts = _facts(settings)
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            if value is not None:
                shown = ("yes" if value else "no") if isinstance(value, bool) else value
                show(safe(f"{name.replace('_', ' ') + ':':<15} {shown}"))
    return 0 if facts["running"] else 1


def _facts(settings: Settings) -> dict[str, object]:
    facts: dict[str, object] = {"running": False, "embedded": settings.database_url is None}
    if settings.database_url is None:
        server = server_status(settings.home)
        facts |= _of_server(server)
        if not server.running:
            return facts
        database = Database(server.url)
    else:
        refuse_malformed_url(settings)
        database = Database(settings.database_url, pooled=settings.database_pooled)
        facts["url"] = settings.shown()["database_url"]
    try:
        with connect(database, application_name="smithers db", deadline_seconds=2) as connection:
            facts |= {
                "running": True,
                "version": connection.info.parameter_status("server_version"),
                "schema": _schema_state(connection),
            }
    except DatabaseUnavailable as exc:
        facts["error"] = exc.message
    return facts


def _of_server(server: ServerStatus) -> dict[str, object]:
    """The facts of an embedded server; those about being idle only where they mean something."""
    idle = server.stop_when_idle > 0
    return {
        "pid": server.pid,
        "url": server.url,
        "data": str(server.data),
        "log": str(server.log),
        "major": server.major,
        "stop_when_idle": server.stop_when_idle if idle else None,
        "watched": server.watched if idle else None,
        "asleep": server.asleep if idle else None,
    }


def _schema_state(connection: psycopg.Connection) -> str:
    try:
        schema.check(connection)
    except SchemaError as exc:
        return exc.code
    return "current"


@db.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@pass_invocation
def psql(invocation: Invocation, *, arguments: tuple[str, ...]) -> None:
    """Open psql on the database; ARGUMENTS are passed on to it.

    For example: smithers db psql -c 'select * from smithers.runs'
    """
    settings = invocation.settings()
    try:
        database = open_database(settings, application_name="smithers db")
    except SchemaError as exc:
        click.echo(f"note: {exc.message}", err=True)
        database = locate_database(settings)
    program = find_client("psql", settings.pg_bindir, prefer_path=not database.embedded)
    sys.stdout.flush()
    os.execve(program, ["psql", *arguments], {**os.environ, **connection_environment(database.dsn)})  # noqa: S606


def _embedded(invocation: Invocation, **flags: object) -> Settings:
    settings = invocation.settings(**flags)
    if settings.database_url is not None:
        origin = settings.origins["database_url"]
        raise SmithersError(
            "DATABASE_NOT_EMBEDDED",
            f"{origin} names a server that Smithers doesn't run",
            hint="unset it to use the embedded database",
        )
    return settings
