"""`smithers init`: what it makes works at once, and it never spoils what is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smithers.cli.main import run
from smithers.operations.errors import OperationError
from smithers.operations.initialising import TEMPLATE, initialise

PYTHON = sys.executable


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def tool(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [PYTHON, "-m", *words], cwd=folder, env=kept, capture_output=True, text=True, check=False
    )


def test_its_test_passes_with_pytest_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "project"
    assert run(["init", str(folder)]) == 0
    assert tree(folder) == set(TEMPLATE)
    began = time.monotonic()
    done = tool(folder, "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert time.monotonic() - began < 10, "so the issue says; it takes one second"


def test_what_it_makes_is_typed_and_linted(tmp_path: Path) -> None:
    initialise(tmp_path)
    mypy = tool(tmp_path, "mypy", "--strict", "--cache-dir", os.devnull, "triage.py", "tests")
    assert mypy.returncode == 0, mypy.stdout
    ruff = tool(tmp_path, "ruff", "check", "--isolated", "--no-cache", ".")
    assert ruff.returncode == 0, ruff.stdout


@pytest.mark.slow
def test_its_workflow_runs_and_waits(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMITHERS_DATABASE_URL", database)
    initialise(tmp_path)
    smithers = ("smithers.cli.main",)
    up = tool(tmp_path, *smithers, "up", "triage.py", "--run-id", "first")
    assert up.returncode == 3, up.stderr
    assert tool(tmp_path, *smithers, "approve", "first", "--no-resume").returncode == 0
    up = tool(tmp_path, *smithers, "up", "triage.py", "--run-id", "first", "--resume")
    assert up.returncode == 0, up.stderr
    output = tool(tmp_path, *smithers, "output", "first", "send")
    assert json.loads(output.stdout) == {"count": 1}


def test_what_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / ".gitignore").symlink_to("nowhere")
    assert run(["init", str(tmp_path)]) == 4
    said = capsys.readouterr().err
    assert said.startswith("error[INIT_FILE_EXISTS]: ")
    assert "README.md, .gitignore" in said
    assert tree(tmp_path) | {".gitignore"} == {"README.md", ".gitignore"}
    assert (tmp_path / "README.md").read_text() == "mine"


def test_nothing_is_left_of_half_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def failing(self: Path, *args: object, **kwargs: object) -> object:
        if self.name == "settings.json":
            raise OSError(28, "No space left on device", str(self))
        return real(self, *args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", failing)
    with pytest.raises(OperationError) as error:
        initialise(tmp_path / "new" / "project")
    assert error.value.code == "INIT_FAILED"
    assert "No space left on device" in error.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_of_a_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    assert run(["init", str(tmp_path / "taken")]) == 4
    assert capsys.readouterr().err.startswith("error[INIT_FAILED]: ")
    assert tree(tmp_path) == {"taken"}
