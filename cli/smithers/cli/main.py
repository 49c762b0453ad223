"""The entry point of the smithers command."""

import click


@click.group()
@click.version_option(package_name="smithers-fleet", prog_name="smithers")
def main() -> None:
    """Durable workflows for coding agents."""
