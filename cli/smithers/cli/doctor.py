"""`smithers doctor`: what is wrong with the installation, and how to mend it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import click
from rich.text import Text

from smithers.cli.failure import FAILED
from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import console, safe
from smithers.operations.doctor.examine import examine
from smithers.operations.doctor.finding import Finding, State
from smithers.process.settings import Settings, SettingsError

_MARKS: Final = {
    State.OK: "✓",
    State.WARNING: "!",
    State.PROBLEM: "✗",
    State.SKIPPED: "\N{EN DASH}",
}
_ASCII_MARKS: Final = {State.OK: "+", State.WARNING: "!", State.PROBLEM: "x", State.SKIPPED: "-"}
_COLOURS: Final = {
    State.OK: "green",
    State.WARNING: "yellow",
    State.PROBLEM: "red",
    State.SKIPPED: "dim",
}


@click.command(short_help="Check database, schema, clock, disk, git, agents; say what to mend.")
@json_option
@pass_invocation
def doctor(invocation: Invocation, *, as_json: bool) -> int:
    """Check the whole installation, and say how to mend what is wrong; exit code 1 for a problem.

    It only looks: nothing is started, made or changed, not even the embedded database. A warning
    is no problem; what can't be checked is skipped.
    """
    found = examine(_settings(invocation))
    if as_json:
        print_json([finding.to_json() for finding in found])
    else:
        _show(found)
    return FAILED if any(each.state is State.PROBLEM for each in found) else 0


def _settings(invocation: Invocation) -> Settings | SettingsError:
    try:
        return invocation.settings()
    except SettingsError as refused:
        return refused


def _show(found: Sequence[Finding]) -> None:
    marks = _marks()
    width = max(len(each.check) for each in found)
    out = console()
    for each in found:
        mark = (marks[each.state], _COLOURS[each.state])
        line = Text.assemble(mark, f" {each.check:<{width}}  {safe(each.message)}")
        out.print(line, soft_wrap=True)
        if each.fix:
            out.print(Text(f"{'':<{width + 4}}fix: {safe(each.fix)}"), soft_wrap=True)
    out.print(Text(_sum(found)), soft_wrap=True)


def _marks() -> Mapping[State, str]:
    """Marks that the encoding of the output has."""
    try:
        "".join(_MARKS.values()).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _ASCII_MARKS
    return _MARKS


def _sum(found: Sequence[Finding]) -> str:
    counts = Counter(each.state for each in found)
    words = [
        f"{counts[state]} {state.value}{'' if counts[state] == 1 else 's'}"
        for state in (State.PROBLEM, State.WARNING)
        if counts[state]
    ]
    return ", ".join(words) or "nothing is wrong"
