"""`smithers migrate`: bring a database to this release."""

from __future__ import annotations

from dataclasses import asdict

import click

from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.process.database import locate_database
from smithers.sql import schema
from smithers.sql.connect import connect


@click.command(short_help="Bring the database to this release.")
@click.option("--plan", is_flag=True, help="Say what would be done, and change nothing.")
@json_option
@pass_invocation
def migrate(invocation: Invocation, *, plan: bool, as_json: bool) -> None:
    """Create or update the tables and functions of the database, all in one transaction.

    It is safe to run at any time and by many at once: what is there already is left alone.
    """
    database = locate_database(invocation.settings())
    with connect(database, application_name="smithers migrate", deadline_seconds=5) as connection:
        done = schema.migrate(connection, plan=plan)
    if as_json:
        print_json({**asdict(done), "changed": done.changed})
        return
    verb = "would apply" if plan else "applied"
    for name in done.migrations:
        click.echo(f"{verb} {name}")
    if done.functions:
        click.echo("would install the functions" if plan else "installed the functions")
    if not done.changed:
        click.echo(f"{database.shown} is up to date")
