"""`smithers config`: the settings of this process, and where each came from."""

from __future__ import annotations

import click

from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json


@click.command(short_help="Show the settings, and with --origin where each came from.")
@click.option("--origin", is_flag=True, help="Show where each value came from.")
@json_option
@pass_invocation
def config(invocation: Invocation, *, origin: bool, as_json: bool) -> None:
    """Show every setting as a command started here would have it; passwords are left out.

    A value comes from a flag, SMITHERS_… in the environment, smithers.toml or [tool.smithers]
    of pyproject.toml (the nearest upward), or the default: the first that has it.
    """
    settings = invocation.settings()
    shown = settings.shown()
    if as_json:
        origins = {name: str(settings.origins[name]) for name in shown}
        both = {name: {"value": shown[name], "origin": origins[name]} for name in shown}
        print_json(both if origin else shown)
        return
    width = max(map(len, shown))
    for name, value in shown.items():
        text = "-" if value is None else str(value)
        click.echo(f"{name:<{width}}  {text}" + (f"  ({settings.origins[name]})" if origin else ""))
