"""`smithers demo`: the product in a minute."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

import click

from smithers.cli.failure import FAILED
from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import console, safe
from smithers.demo.figures import Figures
from smithers.demo.story import tell


@click.command(short_help="See it work: a real run on your repository, killed three times.")
@click.argument("repository", required=False, type=click.Path(path_type=Path))
@json_option
@pass_invocation
def demo(invocation: Invocation, *, repository: Path | None, as_json: bool) -> int:
    """Run the repository-health workflow on a scratch copy of REPOSITORY, and kill its processes.

    REPOSITORY is the one around this folder if not given; where there is none, a sample project
    is made. No key, account or container is needed. The run is an ordinary one in this project's
    .smithers folder: status, events and verify see it. Exit code 1 when a promise wasn't kept.
    """
    stage = Screen(sys.stderr if as_json else sys.stdout)
    figures = tell(invocation.settings(), repository, stage)
    if as_json:
        print_json(figures.to_json())
    else:
        _sum_up(figures, stage)
    return 0 if figures.held else FAILED


class Screen:
    """Tells the demo's own lines in bold colours, and what `smithers up` says indented."""

    def __init__(self, stream: TextIO) -> None:
        self._console = console(stream)
        self.interactive = sys.stdin is not None and sys.stdin.isatty() and stream.isatty()

    def tell(self, line: str, *, style: str = "") -> None:
        """A line of the demo itself."""
        self._console.print(line, style=style or None, soft_wrap=True)

    def overhear(self, line: str) -> None:
        """A line that `smithers up` printed."""
        self._console.print(f"  │ {safe(line)}", style="dim", soft_wrap=True)


def _sum_up(figures: Figures, screen: Screen) -> None:
    megabytes = figures.disk_bytes / 1_000_000
    run = safe(figures.run_id)
    screen.tell("")
    screen.tell(f"report: {safe(figures.report)}")
    screen.tell(
        f"first body after {figures.seconds_to_first_body:.1f} s, {figures.seconds:.1f} s in all, "
        f"{megabytes:.0f} MB on disk, {figures.interrupted} attempts interrupted and run again"
    )
    screen.tell(f"look at it: smithers status {run} · smithers events {run}")
    screen.tell("your own: smithers init · away with all of it: smithers down --purge")
    broken = figures.violations
    held = f"{broken} VIOLATIONS" if broken else f"{figures.invariants} invariants hold"
    screen.tell(f"verify: {held}", style="red" if broken else "green")
    screen.tell(figures.line, style="bold green" if figures.held else "bold red")
