"""Every block of docs/testing.md, run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)


FAILING = """\
from smithers.testing import run_workflow
from smithers.workflow import Sequence, Timer, Approval, workflow


@workflow()
def held(ctx):
    return Sequence(Timer("nap", 60), Approval("gate"))


def test_held():
    run = run_workflow(held)
    assert run.waiting == {}
"""


def run(argv: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as in a shell that has this environment activated."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_documented_tests_pass(tmp_path: Path) -> None:
    name, commands = "", []
    for language, text in BLOCKS:
        if language == "sh":
            commands.append(text)
            continue
        assert language == "python"
        first = re.match(r"# (\w+\.py)\n", text)
        name = first[1] if first else name  # without a name it goes on with the last file
        with (tmp_path / name).open("a") as out:
            out.write(text)
    (command,) = commands
    done = run(["bash", "-eu", "-c", command], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    tests = len(re.findall(r"^def test_", TEXT, flags=re.MULTILINE))
    assert f"{tests} passed" in done.stdout


def test_the_plugin_shows_the_runs_of_a_failed_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["smithers.testing.plugin"]\n')
    (tmp_path / "test_held.py").write_text(FAILING)
    done = run(["pytest", "-q", "test_held.py"], tmp_path)
    assert done.returncode == 1
    assert "run of 'held': waiting-approval\nSequence\n  nap: finished\n  gate: wait" in done.stdout
