"""The command line as one page; run as a script it writes docs/cli.md."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from smithers.cli.main import COMMANDS, smithers

HEAD = """\
# Command line

Written by `make docs` from the commands themselves; don't edit it.

Every command that takes RUN takes the beginning of an id too, when no other run begins so. `--json`
prints the bare result on standard output: a list for listings, else an object; what people are told
goes to standard error. Colours follow `NO_COLOR` and `FORCE_COLOR`, widths `COLUMNS`. Completion:
`smithers completions bash|zsh|fish`.

| exit code | |
|---|---|
| 0 | done |
| 1 | failed: the run, a check, or with `--strict` a degraded run |
| 2 | the run was cancelled |
| 3 | parked: the run waits for a person, an event or time |
| 4 | wrong input or refused: nothing was written |
| 130, 143 | Ctrl-C, SIGTERM |
| 141 | nobody reads the output any more |
"""


def reference() -> str:
    """The page."""
    root = click.Context(smithers, info_name="smithers")
    parts = [HEAD, _section(smithers, root, "## smithers")]
    for name in COMMANDS:
        command = smithers.get_command(root, name)
        assert command is not None
        if not command.hidden:
            parts += _sections(command, root, name)
    return "\n".join(part.rstrip() + "\n" for part in parts)


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every visible command that does something, with its words."""
    root = click.Context(smithers, info_name="smithers")
    for name in COMMANDS:
        command = smithers.get_command(root, name)
        assert command is not None
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", each) for sub, each in command.commands.items())
        else:
            yield name, command


def _sections(command: click.Command, above: click.Context, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=above)
    yield _section(command, context, f"## {context.command_path}")
    if isinstance(command, click.Group):
        for sub, each in command.commands.items():
            inner = click.Context(each, info_name=sub, parent=context)
            yield _section(each, inner, f"### {inner.command_path}")


def _section(command: click.Command, context: click.Context, heading: str) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [heading, "", f"`{context.command_path} {usage}`", ""]
    lines += [inspect.cleandoc(command.help or ""), ""]
    rows = [row for row in map(_row, command.get_params(context)) if row is not None]
    if rows:
        lines += ["| option | |", "|---|---|", *rows]
    return "\n".join(lines)


def _row(parameter: click.Parameter) -> str | None:
    if not isinstance(parameter, click.Option) or parameter.hidden or "--help" in parameter.opts:
        return None
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    value = "" if parameter.is_flag else f" {_value(parameter)}"
    default = f" ({parameter.default})" if parameter.show_default else ""
    text = (parameter.help or "").replace("|", "\\|")
    return f"| {names}{value} | {text}{default} |"


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar.replace("|", "\\|")
    return "N" if isinstance(option.type, click.IntRange | click.FloatRange) else "TEXT"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference())
