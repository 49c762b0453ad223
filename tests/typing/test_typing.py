"""The authoring API and the client tell mistakes to a type checker, before anything runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
GOOD = sorted(HERE.glob("good*.py"))
PLANTED = sorted((HERE / "planted").glob("*.py"))
BIN = Path(sys.executable).parent

Places = frozenset[tuple[str, int]]


@cache
def mypy() -> Places:
    """Give file and line of each error that mypy --strict finds in all the files."""
    files = [str(path.relative_to(ROOT)) for path in (*GOOD, *PLANTED)]
    command = [str(BIN / "mypy"), "--strict", "--no-error-summary", "--no-incremental", *files]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    found = re.findall(r"^(\S+?):(\d+)(?::\d+)?: error:", result.stdout, re.MULTILINE)
    return frozenset((Path(name).name, int(line)) for name, line in found)


@cache
def basedpyright() -> Places:
    """Give file and line of each error that basedpyright finds in all the files."""
    # The project's own settings leave the planted files out.
    settings: dict[str, Any] = {
        "include": [*map(str, GOOD), str(HERE / "planted")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(path.parent) for path in ROOT.glob("*/smithers")],
    }
    with TemporaryDirectory() as folder:
        config = Path(folder, "pyrightconfig.json")
        config.write_text(json.dumps(settings))
        command = [str(BIN / "basedpyright"), "--outputjson", "--pythonpath", sys.executable]
        command += ["--project", str(config)]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(result.stdout)
    assert report["summary"]["filesAnalyzed"] == len(GOOD) + len(PLANTED)
    return frozenset(
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
    )


@pytest.mark.parametrize("checker", [mypy, basedpyright])
@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_file_passes(path: Path, checker: Any) -> None:
    assert {place for place in checker() if place[0] == path.name} == set()


@pytest.mark.parametrize("checker", [mypy, basedpyright])
@pytest.mark.parametrize("path", PLANTED, ids=lambda path: path.stem)
def test_a_planted_mistake_is_found_on_its_line(path: Path, checker: Any) -> None:
    lines = path.read_text().splitlines()
    marked = {(path.name, n) for n, line in enumerate(lines, 1) if line.endswith("# mistake")}
    assert len(marked) == 1
    assert {place for place in checker() if place[0] == path.name} == marked


def test_all_mistakes_are_planted() -> None:
    assert len(PLANTED) == 9
    assert len(GOOD) == 2
