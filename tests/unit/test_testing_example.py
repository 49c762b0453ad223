"""The repository-health example under smithers.testing: real bodies, an agent of the test."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from smithers.testing import TestRun, run_workflow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository of three files."""
    folder = tmp_path / "repo"
    folder.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (folder / name).write_text(f"def {name[0]}() -> None:\n    print('TODO')\n")
    who = ["-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return folder


def run_health(repo: Path, agent: Any, monkeypatch: pytest.MonkeyPatch, **given: Any) -> TestRun:
    monkeypatch.syspath_prepend(EXAMPLES)
    example = importlib.import_module("repo_health")
    shape = {"repo": str(repo), "report": str(repo / "health.md"), "scratch": str(repo / "tmp")}
    return run_workflow(example.repo_health, shape, agents={"repair": agent}, **given)


def test_the_agent_repairs_and_the_report_is_written(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    scripted = importlib.import_module("repair_agent")

    def agent(prompt: str) -> dict[str, object]:
        (path,) = re.findall(r"Repair (.+): remove", prompt)
        return {"removed": scripted.repair(Path(path))}

    run = run_health(repo, agent, monkeypatch, approve=True).assert_status("finished")
    assert run.output("report").files == 3
    assert "# Health of" in (repo / "health.md").read_text()
    assert [run.output("check", iteration=each).passed for each in (0, 1)] == [False, True]


def test_an_agent_that_never_repairs_is_asked_three_times(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_health(repo, {"removed": None}, monkeypatch)
    assert len(run.calls_of("repair")) == 3
    assert not run.output("check").passed
    assert run.waiting == {"publish": "approval"}
