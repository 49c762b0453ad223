"""The rules of the folders, which no other tool checks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_MODULE = 300
MOST_METHODS = 12
ROOTS = sorted(path.parent.parent.name for path in ROOT.glob("*/smithers/*/") if path.is_dir())

SQL = re.compile(
    r"^\s*(select\s.+\sfrom\s|select\s+\w+\(|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s"
    r"|(create|alter|drop)\s+(table|schema|index|role|database|function)\s|with\s+\w+\s+as\s*\()",
    re.IGNORECASE | re.DOTALL,
)


def modules() -> Iterator[Path]:
    """Every Python file of the product."""
    for root in ROOTS:
        yield from (ROOT / root / "smithers").rglob("*.py")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_roots_are_found() -> None:
    assert {"workflow", "sql", "scheduler", "worker", "supervisor", "cli"} <= set(ROOTS)


def test_no_init_directly_in_a_source_root() -> None:
    """It would hide all the other roots: `smithers` is a namespace."""
    assert [str(p) for p in ROOT.glob("*/smithers/__init__.py")] == []


def test_every_root_holds_one_typed_package_of_its_name() -> None:
    for root in ROOTS:
        inside = [p.name for p in (ROOT / root / "smithers").iterdir() if p.name != "__pycache__"]
        assert inside == [root]
        assert (ROOT / root / "smithers" / root / "__init__.py").is_file()
        assert (ROOT / root / "smithers" / root / "py.typed").is_file()


def test_every_root_is_in_every_list_of_pyproject(project: dict[str, Any]) -> None:
    tool = project["tool"]
    build = tool["hatch"]["build"]
    assert sorted(build["dev-mode-dirs"]) == ROOTS
    assert sorted(build["targets"]["wheel"]["packages"]) == [f"{r}/smithers" for r in ROOTS]
    assert sorted(tool["mypy"]["mypy_path"]) == sorted([*ROOTS, "tests", "examples"])
    assert sorted(tool["basedpyright"]["extraPaths"]) == sorted([*ROOTS, "tests", "examples"])
    layers = next(c for c in tool["importlinter"]["contracts"] if c["type"] == "layers")
    named = re.findall(r"smithers\.(\w+)", " ".join(layers["layers"]))
    assert sorted(named) == ROOTS


def test_every_lint_exception_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    lint = text.partition("[tool.ruff.lint]\nselect")[2].partition("[tool.ruff.lint.isort]")[0]
    bare = [
        line for line in re.findall(r'^    "[A-Z]+\d+",.*$', lint, re.MULTILINE) if "#" not in line
    ]
    assert bare == []


def test_modules_are_short() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in modules()
        if (count := len(path.read_text("utf-8").splitlines())) > LONGEST_MODULE
    }
    assert long == {}


def test_classes_are_small() -> None:
    large: dict[str, int] = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                public = [
                    f.name
                    for f in node.body
                    if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")
                ]
                if len(public) > MOST_METHODS:
                    large[f"{path.relative_to(ROOT)}:{node.name}"] = len(public)
    assert large == {}


def sql_texts(path: Path) -> Iterator[str]:
    """String constants that are SQL, docstrings left out."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str | bytes)
            and id(node) not in docstrings
        ):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if SQL.match(text):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {text.strip()[:60]}"


def test_sql_is_written_only_below_sql() -> None:
    found = [t for path in modules() if (ROOT / "sql") not in path.parents for t in sql_texts(path)]
    assert found == []
    assert any(list(sql_texts(p)) for p in (ROOT / "sql").rglob("*.py")), "the search finds SQL"


def test_nothing_is_named_helpers() -> None:
    vague = {"utils.py", "helpers.py", "base.py", "common.py", "misc.py"}
    assert [str(p) for p in modules() if p.name in vague] == []


@pytest.mark.parametrize("module", ["smithers.workflow", "smithers.cli.main"])
def test_authors_and_the_command_line_start_without_the_database(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('psycopg', 'tenacity') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_needs_no_command_of_ours() -> None:
    """So that `smithers --help` is there at once."""
    code = (
        "import sys; from smithers.cli.main import run; run(['--help']);"
        "print(sorted(m for m in sys.modules if m in ('psycopg', 'pydantic', 'rich')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
