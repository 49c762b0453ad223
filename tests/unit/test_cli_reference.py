"""docs/cli.md says what the commands say of themselves, and they all say enough."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from support.cli_reference import commands, reference

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
NO_JSON = {
    "scheduler": "runs until it is stopped; its log is JSON",
    "worker": "runs until it is stopped; its log is JSON",
    "completions": "prints a script",
    "db psql": "is psql",
}


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text() == reference(), "run `make docs`"


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_every_command_has_json_and_words_of_its_own(name: str, command: click.Command) -> None:
    options = {word for each in command.params for word in each.opts}
    assert ("--json" in options) == (name not in NO_JSON), name
    assert len(command.help or "") > 30, f"{name} says too little of itself"
    for each in command.params:
        if isinstance(each, click.Option):
            assert each.help, f"{name} {each.opts} has no words"
