"""`smithers db dump` and `smithers db restore`: the whole database as a file, and back."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import is_terminal, safe, show


@click.command(short_help="Write the database to a file.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@json_option
@pass_invocation
def dump(invocation: Invocation, *, file: Path | None, as_json: bool) -> None:
    """Write every run with all that it needs to go on to FILE, in pg_dump's custom format.

    Without FILE, or with -, to standard output. It may be done at any time, also while runs go on:
    it is the state of one moment. A file of that name is replaced when the new one is whole.
    """
    from smithers.operations.dumping import dump as write

    if file is None or str(file) == "-":
        if as_json:
            raise click.UsageError("--json needs the name of a FILE")
        if is_terminal(sys.stdout):
            raise click.UsageError("a dump is not for a terminal: name a FILE, or redirect it")
        sys.stdout.flush()
        write(invocation.settings(), sys.stdout.buffer)
        return
    done = write(invocation.settings(), file.resolve())
    if as_json:
        print_json(done)
    else:
        show(f"wrote {safe(done.path)}: {done.bytes} bytes in {done.seconds:.1f} s")


@click.command(short_help="Make a file that was dumped the database.")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@pass_invocation
def restore(invocation: Invocation, *, file: Path, as_json: bool) -> None:
    """Put what `smithers db dump` wrote to FILE into the database, all of it or nothing.

    The database must hold no run, and no Smithers process may work on it. It is brought to this
    release. Stop the processes of the database that was dumped, or every run goes on twice. Whoever
    can write FILE can do anything in the database: restore only what you trust.
    """
    from smithers.operations.dumping import restore as read

    done = read(invocation.settings(), file.resolve())
    if as_json:
        print_json(done)
    else:
        runs = f"{done.runs} run{'' if done.runs == 1 else 's'}"
        show(f"restored {runs} from {safe(done.path)} in {done.seconds:.1f} s")
