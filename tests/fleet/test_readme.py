"""Every command of the README, run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def shell(text: str, folder: Path, home: Path) -> str:
    """Run a block of the README in bash and stop at the first command that fails."""
    done = subprocess.run(
        ["bash", "-eu", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": PATH, "SMITHERS_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode} of:\n{text}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A .smithers folder of this test's own, whose database is stopped afterwards."""
    return tmp_path / ".smithers"


@pytest.fixture(autouse=True)
def _stop_database(home: Path) -> object:
    yield
    subprocess.run(
        [sys.executable, "-m", "smithers.cli.main", "db", "stop"],
        env={**os.environ, "SMITHERS_HOME": str(home)},
        check=False,
        capture_output=True,
    )


def block(kind: str, word: str) -> str:
    """The one block of a kind that holds a word."""
    (found,) = [text for language, text in BLOCKS if language == kind and word in text]
    return str(found)


def test_every_block_is_run_here() -> None:
    assert [language for language, _ in BLOCKS] == ["sh", "sh", "python", "sh", "sh"]


def test_the_commands_for_a_clone_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^make (\w+)", block("sh", "make test"), flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert all(f"  {target} " in listed.stdout for target in targets)


def test_it_links_to_pages_that_are_there() -> None:
    linked = re.findall(r"\]\(([\w/.-]+)\)", README)
    assert len(linked) >= 8
    assert [name for name in linked if not (ROOT / name).exists()] == []


def test_a_project_of_ones_own(home: Path, tmp_path: Path) -> None:
    assert block("sh", "smithers demo").splitlines()[1].startswith("smithers demo")
    shell(block("sh", "smithers init hello"), tmp_path, home)
    assert (tmp_path / "hello" / "triage.py").is_file()


@pytest.mark.slow
def test_the_demo(home: Path) -> None:
    said = shell("make demo READY=", ROOT, home)
    # What another make around this one says of folders isn't the demo's.
    told = [line for line in said.splitlines() if not line.startswith("make[")]
    assert re.fullmatch(r"killed 3 times · 14 steps · 0 repeated", told[-1]), said
    assert "approved 30 s after the question was asked" in said
    assert "21 invariants hold" in said
    (report,) = (home / "demo").glob("*/report.md")
    text = report.read_text()
    assert "# Health of" in text
    assert "A planted defect was repaired in 2 passes." in text
    counted = subprocess.run(
        ["bash", "-c", "git ls-files -z '*.sql' | xargs -0 cat | wc -l"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(rf"\| SQL \| \d+ \| {counted.stdout.strip()} \|", text), text


@pytest.mark.slow
def test_a_first_workflow(home: Path, tmp_path: Path) -> None:
    (tmp_path / "fix.py").write_text(block("python", "fix.py"))
    said = shell(block("sh", "graph fix.py"), tmp_path, home)
    assert "run fix-1: finished" in said
