"""`smithers completions`: the script that makes a shell complete our words."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completions(ctx: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options and the ids of runs.

    For bash: smithers completions bash > ~/.local/share/bash-completion/completions/smithers
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click knows the shells that it offers"
    script = kind(ctx.find_root().command, {}, "smithers", "_SMITHERS_COMPLETE")
    if shell == "bash":
        # click asks the bash that is on PATH for its version only to warn; the script is the same.
        click.echo(script.source_template % script.source_vars())
    else:
        click.echo(script.source())
