"""`smithers lint` on a bank of workflows with a mistake each, and on good ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from smithers.cli.main import run

ROOT = Path(__file__).parents[2]
HEAD = """\
import datetime
import os
import random
import subprocess
import time
import uuid
from functools import partial
from pathlib import Path

from pydantic import BaseModel, Field, model_validator
from smithers.workflow import *


class In(BaseModel):
    name: str = "x"


class Out(BaseModel):
    number: int = 0
    names: list[str] = ["a", "b"]


class Other(BaseModel):
    text: str


class Picky(BaseModel):
    text: str

    @model_validator(mode="after")
    def check(self):
        if self.text != "open sesame":
            raise ValueError("no")
        return self


class Needed(BaseModel):
    name: str


def make(number: int = 0) -> Out:
    raise AssertionError("lint runs no body")


def takes(out: Out, extra: str) -> Out:
    raise AssertionError


def free(**more: object) -> Out:
    raise AssertionError


class Methods:
    def body(self) -> Out: ...


@workflow(input=In)
def flow(ctx: Ctx[In]) -> Node:
"""
WRONG: dict[str, tuple[str, str]] = {
    "an id from chance": ("return Task(f'a{random.random()}', Out, run=make)", "UNSTABLE_IDS"),
    "an id from time": ("return Task(f'a{time.time_ns()}', Out, run=make)", "UNSTABLE_IDS"),
    "ids in the order of hashes": (
        (
            "return Sequence(*(Task(f'{i}:{n}', Out, run=make) for i, n in "
            "enumerate({'red', 'green', 'blue', 'black'})))"
        ),
        "UNSTABLE_IDS",
    ),
    "a later id from chance": (
        (
            "a = Task('a', Out, run=make); found = ctx.output_maybe(a)\n"
            "    return Sequence(a, found and Task(f'b{uuid.uuid4()}', Out, run=make))"
        ),
        "UNSTABLE_IDS",
    ),
    "an argument from time": (
        "return Task('a', Out, run=make, args={'number': time.time_ns()})",
        "IMPURE_RENDER",
    ),
    "a prompt from chance": (
        (
            "from smithers.agents.command import command\n"
            "    return Task('a', Out, agent=command(['x']), prompt=str(uuid.uuid4()))"
        ),
        "IMPURE_RENDER",
    ),
    "an argument that isn't taken": (
        "return Task('a', Out, run=make, args={'nummer': 1})",
        "UNKNOWN_PARAMETER",
    ),
    "a parameter that nobody fills": (
        (
            "a = Task('a', Out, run=make)\n"
            "    return Sequence(a, Task('b', Out, run=takes, needs={'out': a}))"
        ),
        "MISSING_PARAMETER",
    ),
    "a later task's unknown parameter": (
        (
            "a = Task('a', Out, run=make); found = ctx.output_maybe(a)\n"
            "    return Sequence(a, *(Task(f'b:{n}', Out, run=make, args={'n': n})"
            " for n in (found.names if found else [])))"
        ),
        "UNKNOWN_PARAMETER",
    ),
    "a need of another model": (
        (
            "a = Task('a', Other, value=Other(text=''))\n"
            "    b = Task('b', Out, run=takes, args={'extra': ''}, needs={'out': a})\n"
            "    return Sequence(a, b)"
        ),
        "PARAMETER_MISMATCH",
    ),
    "a lambda": ("return Task('a', Out, run=lambda: Out())", "TASK_NOT_IMPORTABLE"),
    "a nested function": (
        "def inner() -> Out: ...\n    return Task('a', Out, run=inner)",
        "TASK_NOT_IMPORTABLE",
    ),
    "a bound method": ("return Task('a', Out, run=Methods().body)", "TASK_NOT_IMPORTABLE"),
    "a model inside a function": (
        "class Inner(BaseModel): ...\n    return Task('a', Inner, value=Inner())",
        "INVALID_MODEL",
    ),
    "two nodes with one id": (
        "return Sequence(Task('a', Out, run=make), Task('a', Out, run=make))",
        "DUPLICATE_ID",
    ),
    "a value that is no JSON": (
        "return Task('a', Out, run=make, args={'number': object()})",
        "INVALID_VALUE",
    ),
    "no node at all": ("return 7", "INVALID_NODE"),
    "an output that isn't there yet": (
        (
            "a = Task('a', Out, run=make)\n"
            "    return Sequence(a, Task(str(ctx.output(a)), Out, run=make))"
        ),
        "OUTPUT_MISSING",
    ),
    "a render that raises": ("return {}['x']", "RENDER_FAILED"),
}
DOUBTFUL = {
    "the time in a condition": (
        "return Sequence(Task('a', Out, run=make), time.time() < 0 and Task('b', Out, run=make))",
        "uses time.time",
    ),
    "the environment": (
        "return Sequence(os.environ.get('HOME') == '?' and Task('b', Out, run=make))",
        "uses os.environ",
    ),
    "a clock by another name": (
        "return Sequence(datetime.datetime.now().year < 9 and Task('b', Out, run=make))",
        "uses datetime.datetime.now",
    ),
    "a file": ("Path('written').write_text('x')\n    return Sequence()", "writes "),
    "a program": ("subprocess.run(['true'])\n    return Sequence()", "starts a program"),
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMITHERS_HOME", str(tmp_path / ".smithers"))
    monkeypatch.setenv("SMITHERS_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.chdir(tmp_path)


def linted(
    capsys: pytest.CaptureFixture[str], body: str, *words: str
) -> tuple[int, list[dict[str, Any]]]:
    Path("flow.py").write_text(f"{HEAD}    {body}\n")
    code = run(["lint", "flow.py", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_an_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    body, expected = WRONG[name]
    code, found = linted(capsys, body)
    errors = [each for each in found if each["level"] == "error"]
    assert code == 1
    assert [each["code"] for each in errors][:1] == [expected], found
    assert all(each["message"] and each["fix"] for each in found)


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_a_render_should_not_do_is_a_warning(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    body, words = DOUBTFUL[name]
    code, found = linted(capsys, body)
    assert code == 0, found
    (warning,) = [each for each in found if each["level"] == "warning"]
    assert warning["code"] == "IMPURE_RENDER"
    assert words in warning["message"]


def test_a_finding_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = linted(capsys, "return Task('a', Out, run=make, args={'nummer': 1})")
    line = HEAD.splitlines().index("def make(number: int = 0) -> Out:") + 1
    assert (found[0]["where"], found[0]["node_id"]) == (f"flow.py:{line}", "a")
    assert run(["lint", "flow.py"]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"flow.py:{line} a: error[UNKNOWN_PARAMETER]: make takes no 'nummer'\n")
    assert "  fix: " in said


def test_what_could_not_be_seen_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    gate = "a = Task('a', Picky, run=make)\n    return Sequence(a, Task('b', Out, run=make))"
    code, found = linted(capsys, gate)
    assert (code, [each["code"] for each in found]) == (0, ["NOT_ALL_SEEN"])
    assert "beyond 'a'" in found[0]["message"]
    endless = "return Loop('l', Task('a', Out, run=make), until=False, max_iterations=999)"
    code, found = linted(capsys, endless)
    assert "first 60 frames" in found[0]["message"]
    text = Path("flow.py").read_text().replace("input=In", "input=Needed")
    Path("flow.py").write_text(text)
    assert run(["lint", "flow.py", "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)
    assert (note["code"], note["level"]) == ("NOT_RENDERED", "note")


def test_what_cannot_be_looked_at_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("flow.py").write_text("import nowhere_to_be_found\n")
    assert run(["lint", "flow.py"]) == 4
    assert "ENVIRONMENT_MISSING" in capsys.readouterr().err
    Path("flow.py").write_text(f"{HEAD}    return Sequence()\n")
    assert run(["lint", "flow.py", "--input", '{"name": 7}']) == 4
    assert "INPUT_INVALID" in capsys.readouterr().err
    assert run(["lint", "flow.py:other"]) == 4


@pytest.mark.parametrize(
    ("page", "document"),
    [
        ("examples/repo_health.py", None),
        ("operations/smithers/operations/template/triage.py", None),
        ("README.md", '{"title": "broken login"}'),
        ("docs/quickstart.md", None),
        ("docs/authoring.md", None),
    ],
)
def test_what_we_show_has_no_fault(
    page: str, document: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [ROOT / page]
    if page.endswith(".md"):
        text = (ROOT / page).read_text()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
        files = []
        for block in blocks:
            files.append(Path(block.partition("\n")[0].removeprefix("# ")))
            files[-1].write_text(block)
    assert files
    for file in files:
        words = [] if document is None else ["--input", document]
        assert run(["lint", str(file), *words, "--json"]) == 0, capsys.readouterr().out
        assert json.loads(capsys.readouterr().out) == [], file
