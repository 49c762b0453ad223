from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from smithers.bundle.build import build
from smithers.bundle.pack import pack
from smithers.bundle.store import Stored
from smithers.bundle.unpack import ensure

# One process never loads two bundles, so each load has a process of its own.
LOADER = """
import json, sys
from pathlib import Path
from smithers.bundle.errors import BundleError
from smithers.bundle.load import activate, import_entry, load_workflow
folder = Path(sys.argv[1])
names = json.loads(sys.argv[2])
try:
    for name in names:
        found = load_workflow(folder, name)
    module = sys.modules[found.__module__]
    import importlib
    again = importlib.import_module(found.__module__)
    print(json.dumps({"name": found.name, "module": module.__name__, "file": module.__file__,
                      "same": again is module, "value": getattr(module, "VALUE", None)}))
except BundleError as error:
    print(json.dumps({"code": error.code, "message": error.message,
                      "details": error.details, "hint": error.hint}))
"""

FLOW = """
from pydantic import BaseModel
from smithers.workflow import Ctx, Node, Sequence, workflow

class Input(BaseModel):
    pass

@workflow(input=Input)
def {name}(ctx: Ctx[Input]) -> Node:
    return Sequence()
"""
ONE = FLOW.format(name="one")
TWO = ONE + FLOW.format(name="two").split("class Input")[1].replace("(BaseModel):\n    pass", "")


def project(folder: Path, files: dict[str, str]) -> None:
    for name, content in {"pyproject.toml": "", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def unpacked(entry: Path, home: Path) -> Path:
    bundle = build(entry)
    return ensure(
        lambda _: Stored(bundle.manifest, pack(bundle.contents)), home, bundle.source_hash
    )


def load(entry: Path, home: Path, *names: str | None, cwd: Path | None = None) -> dict[str, object]:
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            LOADER,
            str(unpacked(entry, home)),
            json.dumps(names or [None]),
        ],
        cwd=cwd or home,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("entry", "module"),
    [
        ("flow.py", "flow"),
        ("my-flow.v2.py", "my-flow.v2"),
        ("pkg/sub/flow.py", "pkg.sub.flow"),
        ("pkg/__init__.py", "pkg"),
        ("plain/flow.py", "flow"),
    ],
)
def test_the_entry_is_imported_under_its_own_name(
    tmp_path: Path, home: Path, entry: str, module: str
) -> None:
    packages = {"pkg/__init__.py": "", "pkg/sub/__init__.py": "", "plain/readme": ""}
    project(tmp_path / "checkout", {**packages, entry: ONE})
    found = load(tmp_path / "checkout" / entry, home)
    assert (found["name"], found["module"], found["same"]) == ("one", module, True)
    assert str(found["file"]).startswith(str(home))


def test_modules_come_from_the_bundle_and_never_from_the_checkout(
    tmp_path: Path, home: Path
) -> None:
    checkout = tmp_path / "checkout"
    project(checkout, {"flow.py": "from tool import VALUE\n" + ONE, "tool.py": "VALUE = 1\n"})
    folder = unpacked(checkout / "flow.py", home)
    (checkout / "tool.py").write_text("VALUE = 2\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOADER, str(folder), "[null]"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout)["value"] == 1


def test_a_function_level_import_is_there_when_it_runs(tmp_path: Path, home: Path) -> None:
    code = "def late():\n    from pkg import tool\n    return tool.X\nVALUE = late()\n"
    project(tmp_path / "c", {"flow.py": code + ONE, "pkg/__init__.py": "", "pkg/tool.py": "X = 5"})
    assert load(tmp_path / "c/flow.py", home)["value"] == 5


def test_included_files_lie_where_they_lay(tmp_path: Path, home: Path) -> None:
    code = "from pathlib import Path\nVALUE = (Path(__file__).parent / 'p/a.md').read_text()\n"
    flow = code + ONE.replace("input=Input", "input=Input, include=['p/*.md']")
    project(tmp_path / "c", {"flows/flow.py": flow, "flows/p/a.md": "hello"})
    assert load(tmp_path / "c/flows/flow.py", home)["value"] == "hello"


def test_a_package_that_imports_its_own_entry_is_fine(tmp_path: Path, home: Path) -> None:
    project(tmp_path / "c", {"pkg/__init__.py": "from .flow import one\n", "pkg/flow.py": ONE})
    assert load(tmp_path / "c/pkg/flow.py", home)["module"] == "pkg.flow"


def test_several_workflows_have_to_be_named(tmp_path: Path, home: Path) -> None:
    project(tmp_path / "c", {"flow.py": TWO})
    entry = tmp_path / "c/flow.py"
    assert load(entry, home, "two")["name"] == "two"
    ambiguous = load(entry, home)
    assert ambiguous["code"] == "WORKFLOW_AMBIGUOUS"
    assert ambiguous["details"] == {"candidates": ["one", "two"], "path": "flow.py"}
    missing = load(entry, home, "three")
    assert missing["code"] == "WORKFLOW_NOT_FOUND"
    assert "one, two" in str(missing["hint"])


def test_a_file_without_a_workflow_says_so(tmp_path: Path, home: Path) -> None:
    project(tmp_path / "c", {"flow.py": "x = 1\n"})
    assert load(tmp_path / "c/flow.py", home)["code"] == "WORKFLOW_NOT_FOUND"


def test_an_imported_workflow_counts_only_where_none_is_defined(tmp_path: Path, home: Path) -> None:
    project(tmp_path / "c", {"lib.py": ONE, "only.py": "from lib import one\n"})
    assert load(tmp_path / "c/only.py", home)["name"] == "one"
    project(tmp_path / "c", {"both.py": "from lib import one\n" + FLOW.format(name="own")})
    assert load(tmp_path / "c/both.py", home)["name"] == "own"


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("x = 1\nraise ValueError('no luck')\n", "IMPORT_FAILED", "flow.py:2: ValueError: no luck"),
        ("import sys\nsys.exit(3)\n", "IMPORT_FAILED", "flow.py:2: SystemExit: 3"),
        ("import tool\n", "IMPORT_FAILED", "tool.py:2: ZeroDivisionError: division by zero"),
        ("import broken\n", "SYNTAX_ERROR", "broken.py:1: SyntaxError"),
        ("import not_installed_x\n", "ENVIRONMENT_MISSING", "flow.py:1: ModuleNotFoundError"),
        ("import tool2.missing\n", "IMPORT_FAILED", "flow.py:1: ModuleNotFoundError"),
        ("def f():\n    f()\nf()\n", "IMPORT_FAILED", "flow.py:2: RecursionError"),
    ],
)
def test_what_an_import_raises_is_told_with_its_place(
    tmp_path: Path, home: Path, code: str, error: str, message: str
) -> None:
    files = {"tool.py": "\n1/0\n", "broken.py": "print 'x'\n", "tool2/__init__.py": ""}
    project(tmp_path / "c", {**files, "flow.py": code})
    failed = load(tmp_path / "c/flow.py", home)
    assert failed["code"] == error
    assert str(failed["message"]).startswith(message)
    assert isinstance(failed["details"], dict)
    assert "Traceback" in str(failed["details"]["traceback"])
    assert str(home) not in json.dumps(failed)


def test_an_entry_whose_name_is_taken_is_refused(tmp_path: Path, home: Path) -> None:
    project(tmp_path / "c", {"pydantic.py": "x = 1\n"})
    assert load(tmp_path / "c/pydantic.py", home)["code"] == "ENTRY_NAME_TAKEN"


def test_one_process_never_loads_two_versions(tmp_path: Path, home: Path) -> None:
    project(tmp_path / "c", {"flow.py": ONE})
    first = unpacked(tmp_path / "c/flow.py", home)
    project(tmp_path / "c", {"flow.py": ONE + "\nVALUE = 2\n"})
    second = unpacked(tmp_path / "c/flow.py", home)
    code = (
        "import sys\nfrom pathlib import Path\nfrom smithers.bundle.load import activate\n"
        "activate(Path(sys.argv[1])); activate(Path(sys.argv[1]))\n"
        "try:\n    activate(Path(sys.argv[2]))\nexcept Exception as e:\n    print(e.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(first), str(second)],
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "BUNDLE_LOADED"
