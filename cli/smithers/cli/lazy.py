"""A click group that imports a command only when it is used, so that help and start are quick."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by a table: name → (`module:attribute`, one line of help)."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table: Mapping[str, tuple[str, str]] = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the table's order, which is the order of the help."""
        return [*self.table, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name, or None when there is none."""
        if cmd_name not in self.table:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.table[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            # One without words is for the engine itself.
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items() if text])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, and suggest the nearest name for one that isn't there."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            from difflib import get_close_matches

            close = get_close_matches(name, self.list_commands(ctx), n=1)
            ctx.fail(
                f"there is no command {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")
            )
        return super().resolve_command(ctx, args)
