"""docs/troubleshooting.md has an entry for every error code of the product, and for no other."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from smithers.operations.verdict import Verdict
from support.cli_reference import commands

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"

CODE: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
COMPOUND: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
ENDINGS: Final = ("Error", "Refused", "Run", "Shape", "Fenced", "Expired", "Timeout", "Finding")
MAKERS: Final = {"cls", "__init__", "_finding", "_refusal", "_failed"}
NEVER_SHOWN: Final = {"UNINVENTABLE"}
"""Lint ends made-up attempts with it; what people see of that is NOT_ALL_SEEN."""

IN_SQL: Final = re.compile(r"""['"]code['"][,:]\s*['"]([A-Z_]+)['"]""")
REFUSAL: Final = re.compile(r"\brefuse\(([^;]+);")
REASON: Final = re.compile(r"[a-z]+(-[a-z]+)*")


def modules(pattern: str = "*/smithers/**/*.py") -> Iterator[ast.Module]:
    """The product's modules, without those that `smithers init` copies."""
    for path in sorted(ROOT.glob(pattern)):
        if "template" not in path.parts:
            yield ast.parse(path.read_text())


def codes() -> set[str]:
    """Constants named like their value, the first argument of what makes an error, and SQL's."""
    found: set[str] = set()
    for tree in modules():
        for node in ast.walk(tree):
            found |= {*_constant(node), *_raised(node)}
    for folder in ("functions", "migrations"):
        for path in (ROOT / "sql" / "smithers" / "sql" / folder).glob("*.sql"):
            text = path.read_text()
            found |= set(IN_SQL.findall(text))
            for call in REFUSAL.findall(text):
                found |= set(re.findall(r"'([A-Z_]{4,})'", call))
    return found - NEVER_SHOWN


def _constant(node: ast.AST) -> Iterator[str]:
    """`CODE = "CODE"`, of several words: one word may be a level or a kind."""
    if isinstance(node, ast.Assign):
        targets: list[ast.expr] = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return
    for target in targets:
        if isinstance(target, ast.Name) and list(_code(node.value)) == [target.id]:
            yield from filter(COMPOUND.fullmatch, [target.id])


def _raised(node: ast.AST) -> Iterator[str]:
    """`XError("CODE", …)`, `cls("CODE", …)`, `f(code="CODE")`, `{"code": "CODE"}`."""
    if isinstance(node, ast.Call):
        if node.args and (_name(node).endswith(ENDINGS) or _name(node) in MAKERS):
            yield from _code(node.args[0])
        for keyword in node.keywords:
            if keyword.arg == "code":
                yield from _code(keyword.value)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "code":
                yield from _code(value)


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _code(node: ast.expr | None) -> Iterator[str]:
    """The code that an expression is; those of both branches of a conditional one."""
    match node:
        case ast.Constant(value=str(text)) if CODE.fullmatch(text):
            yield text
        case ast.IfExp(body=body, orelse=other):
            yield from _code(body)
            yield from _code(other)
        case _:
            return


def reasons() -> set[str]:
    """Why a run is where it is: what `why` and `status` give as the kind of a reason."""
    found: set[str] = set()
    for name in ("verdict", "blocked", "looking"):
        for tree in modules(f"operations/smithers/operations/{name}.py"):
            for node in ast.walk(tree):
                if isinstance(node, ast.Call):
                    found |= set(_reason(node))
    return found


def _reason(call: ast.Call) -> Iterator[str]:
    if _name(call) not in {"Unhealthy", "Blocked", "Reason", "_wait"}:
        return
    given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "kind")]
    for each in given:
        if isinstance(each, ast.Constant) and REASON.fullmatch(str(each.value)):
            yield str(each.value)


def entries() -> list[tuple[str, str]]:
    """Each heading of the third level with the text under it."""
    parts = re.split(r"^### (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    texts = (text.partition("\n## ")[0].strip() for text in parts[2::2])
    return list(zip((heading.strip("`") for heading in parts[1::2]), texts, strict=True))


def paragraphs(word: str) -> dict[str, str]:
    """What each entry says after `word`, to the end of the paragraph; empty if it doesn't."""
    pattern = re.compile(rf"^{word}: (.+?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
    found = ((code, pattern.search(text)) for code, text in entries())
    return {code: match[1].strip() if match else "" for code, match in found}


def first_cells() -> set[str]:
    """What the tables above the first entry explain: the words of their first column."""
    top = PAGE.read_text().partition("\n### ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", top, flags=re.MULTILINE)
    return {word.strip() for cell in cells for word in cell.split(",")}


def test_every_code_has_an_entry_and_no_entry_is_dead() -> None:
    known, told = codes(), {code for code, _ in entries()}
    wrong = {
        "headings to write": sorted(known - told),
        "headings of codes that nothing raises": sorted(told - known),
    }
    words = [f"{what}: {', '.join(which)}" for what, which in wrong.items() if which]
    assert not words, f"docs/troubleshooting.md · {' · '.join(words)}"


def test_every_entry_has_a_cause_and_a_fix_of_its_own() -> None:
    twice = [code for code, count in Counter(code for code, _ in entries()).items() if count > 1]
    assert not twice, f"explained twice: {', '.join(twice)}"
    for word, least in (("Cause", 16), ("Fix", 10)):
        told = paragraphs(word)
        short = [code for code, text in told.items() if len(text) < least]
        assert not short, f"without a {word}: {', '.join(short)}"
        times = Counter(told.values())
        same = [code for code, text in told.items() if times[text] > 1]
        assert not same, f"with the same {word}: {', '.join(same)}"


def test_every_verdict_and_reason_is_explained() -> None:
    missing = sorted({*Verdict, *reasons()} - first_cells())
    assert not missing, f"in no table of docs/troubleshooting.md: {', '.join(missing)}"


def test_every_command_that_it_names_can_be_typed() -> None:
    known = dict(commands())
    for words in re.findall(r"`(?:[A-Z_]+=\S+ )?smithers ([a-z][^`]*)`", PAGE.read_text()):
        command = re.match(r"[a-z]+(?: [a-z]+)*", words)
        assert command, words
        name = max((each for each in known if f"{words} ".startswith(f"{each} ")), default="")
        assert name, f"there is no command: smithers {words}"
        options = {each for param in known[name].params for each in param.opts}
        unknown = set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", words)) - options
        assert not unknown, f"smithers {name} has no {', '.join(sorted(unknown))}"
