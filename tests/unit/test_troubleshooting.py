"""docs/troubleshooting.md has an entry for every error code of the product, and for no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+|USAGE|INTERNAL|POISONED|FENCED")
ENDINGS = ("Error", "Refused", "Run", "Shape", "Fenced", "Expired", "Finding")
MAKERS = {"cls", "_finding", "_refusal", "__init__"}
IN_SQL = re.compile(r"(?:'code', |refuse\()'([A-Z_]+)'")


def modules() -> Iterator[ast.Module]:
    for path in sorted(ROOT.glob("*/smithers/**/*.py")):
        if "template" not in path.parts:
            yield ast.parse(path.read_text())


def codes() -> set[str]:
    """Constants named like their value, and the first argument of whatever raises an error."""
    found: set[str] = set()
    for tree in modules():
        for node in ast.walk(tree):
            found |= set(_constant(node)) | set(_raised(node))
    for path in (ROOT / "sql").rglob("*.sql"):
        if "queries" not in path.parts:
            found |= set(IN_SQL.findall(path.read_text()))
    return {each for each in found if CODE.fullmatch(each)}


def _constant(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
        if isinstance(node.target, ast.Name) and node.target.id == node.value.value:
            yield node.target.id
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == node.value.value:
                yield target.id


def _raised(node: ast.AST) -> Iterator[str]:
    """`XError("CODE", …)`, `cls("CODE", …)`, `super().__init__("CODE", …)`, `{"code": "CODE"}`."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if (name.endswith(ENDINGS) or name in MAKERS) and node.args:
            yield from _text(node.args[0])
        for keyword in node.keywords:
            if keyword.arg == "code":
                yield from _text(keyword.value)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "code":
                yield from _text(value)


def _text(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def entries() -> dict[str, str]:
    """The text under each heading that is a code."""
    parts = re.split(r"^### (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    found: dict[str, str] = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        for code in re.findall(r"`([A-Z_0-9]+)`", heading):
            found[code] = text.split("\n## ")[0]
    return found


def test_every_code_has_an_entry_and_no_entry_is_dead() -> None:
    known, told = codes(), set(entries())
    assert sorted(known - told) == [], "codes without an entry"
    assert sorted(told - known) == [], "entries of codes that nothing raises"


def test_every_entry_has_a_cause_and_a_fix() -> None:
    for code, text in entries().items():
        assert re.search(r"^Cause: \S.{15,}", text, flags=re.MULTILINE), code
        assert re.search(r"^Fix: \S.{10,}", text, flags=re.MULTILINE), code
