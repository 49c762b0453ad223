"""How the command ends: exit codes, one clear line, an object for programs."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from uuid import UUID

import click
import pytest

from smithers.cli import main as cli
from smithers.cli.invocation import plain
from smithers.workflow.errors import SmithersError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def work(*words: str) -> tuple[int, str, str]:
        code = cli.run(words)
        out, err = capsys.readouterr()
        return code, out, err

    return work


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Adds a subcommand `probe` that does what the test says."""

    def add(body: Callable[[], object]) -> None:
        def callback(**_: object) -> object:
            return body()

        flag = click.Option(["--json"], is_flag=True)
        probe = click.Command("probe", callback=callback, params=[flag])
        monkeypatch.setitem(cli.smithers.commands, "probe", probe)

    return add


def raising(error: BaseException) -> Callable[[], object]:
    def body() -> object:
        raise error

    return body


def test_help_lists_every_command_and_none_is_missing(run: Run) -> None:
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    for name, (target, text) in cli.COMMANDS.items():
        assert (f"  {name} " in out) == bool(text), "one without words is for the engine itself"
        module, _, attribute = target.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        assert found.name == name
        assert not text or text.endswith(".")


def test_version(run: Run) -> None:
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("smithers, version ")


@pytest.mark.parametrize("result", [(None, 0), (0, 0), (3, 3), (True, 1)])
def test_a_commands_result_is_the_exit_code(
    run: Run, command: Callable[[Callable[[], object]], None], result: tuple[object, int]
) -> None:
    command(lambda: result[0])
    assert run("probe")[0] == result[1]


def test_a_known_error_is_one_line_and_a_hint(
    run: Run, command: Callable[[Callable[[], object]], None]
) -> None:
    command(raising(SmithersError("TOO_BAD", "it is\nbroken", hint="mend it")))
    assert run("probe") == (4, "", "error[TOO_BAD]: it is broken\nhint: mend it\n")


def test_with_json_the_error_is_an_object_too(
    run: Run, command: Callable[[Callable[[], object]], None]
) -> None:
    command(raising(SmithersError("TOO_BAD", "it is broken", details={"at": Path("/x")})))
    code, out, err = run("probe", "--json")
    assert code == 4
    assert json.loads(out) == {
        "code": "TOO_BAD",
        "message": "it is broken",
        "details": {"at": "/x"},
        "hint": None,
    }
    assert err == "error[TOO_BAD]: it is broken\n"


def test_an_error_may_have_its_own_exit_code(
    run: Run, command: Callable[[Callable[[], object]], None]
) -> None:
    class RunFailed(SmithersError):
        exit_code = 1

    command(raising(RunFailed("RUN_FAILED", "it failed")))
    assert run("probe")[0] == 1


@pytest.mark.parametrize("words", [["--bogus"], ["bogus"], ["db", "bogus"], ["migrate", "x"]])
def test_wrong_usage_is_refused_with_4(run: Run, words: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (4, "")
    assert err.startswith("error[USAGE]: ")
    assert "--help" in err
    code, out, _ = run(*words, "--json")
    assert (code, json.loads(out)["code"]) == (4, "USAGE")


def test_a_near_miss_is_suggested(run: Run) -> None:
    assert "did you mean 'migrate'?" in run("migrat")[2]


def test_no_command_shows_the_help_and_is_refused(run: Run) -> None:
    code, _, err = run("db")
    assert code == 4
    assert "psql" in err


def test_an_unforeseen_error_is_one_line_with_its_traceback_in_a_file(
    run: Run,
    command: Callable[[Callable[[], object]], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / ".smithers"
    home.mkdir()
    monkeypatch.setenv("SMITHERS_HOME", str(home))
    command(raising(ZeroDivisionError("oh\udcff")))
    code, _, err = run("probe")
    assert code == 1
    assert "Traceback" not in err
    assert err.startswith("error[INTERNAL]: ZeroDivisionError: oh")
    (kept,) = (home / "logs").iterdir()
    assert str(kept) in err
    assert "Traceback" in kept.read_text()


def test_when_debugging_the_traceback_is_shown(
    run: Run,
    command: Callable[[Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SMITHERS_LOG_LEVEL", "debug")
    command(raising(ZeroDivisionError()))
    assert "Traceback" in run("probe")[2]


def test_an_interrupt_ends_with_130(
    run: Run, command: Callable[[Callable[[], object]], None]
) -> None:
    command(raising(KeyboardInterrupt()))
    assert run("probe") == (130, "", "")


def test_a_closed_pipe_ends_quietly() -> None:
    code = (
        "from smithers.cli import main as cli; import click, sys;"
        "cli.smithers.add_command(click.Command('flood', callback=lambda:"
        " [click.echo('x' * 1000) for _ in range(1000)]));"
        "sys.exit(cli.run(['flood']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_values_for_json() -> None:
    @dataclass
    class Point:
        at: datetime

    class Color(StrEnum):
        RED = "red"

    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert plain(noon) == "2026-01-01T12:00:00+00:00"
    assert plain(timedelta(minutes=1)) == 60.0
    assert plain(Decimal(2**70)) == 2**70
    assert plain(Decimal("0.5")) == 0.5
    assert plain(Color.RED) == "red"
    assert plain(UUID(int=0)) == "00000000-0000-0000-0000-000000000000"
    assert plain({"b", "a"}) == ["a", "b"]
    assert plain(Point(noon)) == {"at": noon}
    with pytest.raises(TypeError):
        plain(object())
