"""The docs, followed to the letter from an empty folder: every file written, every command run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
INSTALL = re.compile(r"^(pip|pipx|uv) .*$", re.MULTILINE)

pytestmark = pytest.mark.slow


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page, each with its language."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def environ(tmp_path: Path) -> Generator[dict[str, str]]:
    """As a person has it, whose database is stopped in the end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SMITHERS_")}
    environ = {**kept, "PATH": PATH, "SMITHERS_HOME": str(tmp_path / "home" / ".smithers")}
    (tmp_path / "home").mkdir()
    yield environ
    subprocess.run(["smithers", "db", "stop"], env=environ, check=False, capture_output=True)


def follow(page: str, folder: Path, environ: dict[str, str]) -> str:
    """Write each Python block to the file that its first line names, run each shell block.

    The shell is one for the whole page, as a person's is. What installs the product is done.
    """
    script = ["set -eu"]
    for language, text in blocks(page):
        if language == "python":
            name = re.match(r"# (\S+\.py)\n", text)
            assert name is not None, f"a block of {page} says not where it belongs:\n{text}"
            script.append(f"cat > {name[1]} <<'END_OF_FILE'\n{text}END_OF_FILE")
        elif language == "sh":
            script.append(INSTALL.sub(": installed", text))
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_authoring(tmp_path: Path, environ: dict[str, str]) -> None:
    said = follow("authoring.md", tmp_path, environ)
    assert '"words": 5' in said
    assert "https://ci.example/7/1.2" in said
    for name in ("order.py", "agent.py"):
        done = subprocess.run(
            ["smithers", "up", name, "--json"], cwd=tmp_path, env=environ, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert '"verdict": "done"' in done.stdout, done.stdout + done.stderr


def test_quickstart(tmp_path: Path, environ: dict[str, str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    said = follow("quickstart.md", folder, environ)
    assert "2 passed" in said
    assert '"count": 1' in said
    assert "draft:parcel.txt #1" in said, "the second pass was fine"
    assert "invariants hold" in said
