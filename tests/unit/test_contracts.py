"""What the checkers guard: layers between packages, and SQL that isn't made of strings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def test_the_import_contracts_hold() -> None:
    done = subprocess.run(
        [BIN / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


PLANTED = """\
from smithers.sql.calls import Connection, scalar

def planted(connection: Connection, name: str) -> None:
    scalar(connection, f"select count(*) from {name}")  # line 4
    scalar(connection, "select count(*) from " + name)  # line 5
    connection.execute(f"drop table {name}")  # line 6
    scalar(connection, "select %s", name)
"""


@pytest.mark.slow
def test_sql_made_of_strings_is_refused_by_the_type_checker(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    roots = [str(path.parent.parent) for path in ROOT.glob("*/smithers/*/")]
    settings = {"typeCheckingMode": "strict", "extraPaths": roots, "include": ["."]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [BIN / "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    lines = {d["range"]["start"]["line"] + 1 for d in found if d["severity"] == "error"}
    assert lines == {4, 5, 6}, found
