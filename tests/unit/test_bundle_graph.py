from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from smithers.bundle.build import build
from smithers.bundle.errors import BundleError


def make(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def paths(entry: Path) -> set[str]:
    return {file.path for file in build(entry).manifest.files}


ABSOLUTE = {
    "pyproject.toml": "",
    "flow.py": "import a.b as c\n",
    "a/__init__.py": "",
    "a/b.py": "",
    "a/unused.py": "",
}


def test_an_absolute_import_brings_the_packages_above_it(tmp_path: Path) -> None:
    make(tmp_path, ABSOLUTE)
    assert paths(tmp_path / "flow.py") == {"flow.py", "a/__init__.py", "a/b.py"}


@pytest.mark.parametrize(
    "statement",
    [
        "from a import b",
        "from a.b import x",
        "import a.b",
        "def f():\n    from a import b\n",
        "async def f():\n    if False:\n        import a.b\n",
        "try:\n    import a.b\nexcept ImportError:\n    pass\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import b\n",
        "import importlib\nimportlib.import_module('a.b')\n",
        "from importlib import import_module\nimport_module('a.b')\n",
        "__import__('a.b')\n",
        "from a.b import *\n",
        "class C:\n    import a.b\n",
    ],
)
def test_every_kind_of_import_is_found(tmp_path: Path, statement: str) -> None:
    make(tmp_path, {**ABSOLUTE, "flow.py": statement})
    assert paths(tmp_path / "flow.py") == {"flow.py", "a/__init__.py", "a/b.py"}


def test_relative_imports_start_at_the_package(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            "pyproject.toml": "",
            "pkg/__init__.py": "from . import side\n",
            "pkg/side.py": "",
            "pkg/deep/__init__.py": "",
            "pkg/deep/flow.py": "from .near import x\nfrom ..far import y\nfrom .. import other\n",
            "pkg/deep/near.py": "",
            "pkg/far.py": "",
            "pkg/other/__init__.py": "from .inner import *\n",
            "pkg/other/inner.py": "",
        },
    )
    bundle = build(tmp_path / "pkg/deep/flow.py")
    assert bundle.manifest.module == "pkg.deep.flow"
    assert bundle.manifest.import_roots == ("pkg/deep", "")
    assert {file.path for file in bundle.manifest.files} == {
        "pkg/__init__.py",
        "pkg/side.py",
        "pkg/deep/__init__.py",
        "pkg/deep/flow.py",
        "pkg/deep/near.py",
        "pkg/far.py",
        "pkg/other/__init__.py",
        "pkg/other/inner.py",
    }


def test_a_relative_import_above_the_top_brings_nothing(tmp_path: Path) -> None:
    make(tmp_path, {"pyproject.toml": "", "flow.py": "from ...x import y\n", "x.py": ""})
    assert paths(tmp_path / "flow.py") == {"flow.py"}


def test_namespace_packages_are_searched_in_every_root(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            "pyproject.toml": "",
            "flow.py": "import ns.one\nfrom ns.two import x\nimport ns\n",
            "ns/one.py": "",
            "src/ns/two.py": "",
            "src/ns/three.py": "",
        },
    )
    assert paths(tmp_path / "flow.py") == {"flow.py", "ns/one.py", "src/ns/two.py"}


def test_a_star_import_brings_the_modules_in_all(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            "pyproject.toml": "",
            "flow.py": "from pkg import *\n",
            "pkg/__init__.py": "__all__ = ['one']\n__all__ += ['two']\n",
            "pkg/one.py": "",
            "pkg/two.py": "",
            "pkg/three.py": "",
        },
    )
    assert paths(tmp_path / "flow.py") == {
        "flow.py",
        "pkg/__init__.py",
        "pkg/one.py",
        "pkg/two.py",
    }


def test_the_entry_folder_wins_over_the_root_and_the_root_over_src(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            "pyproject.toml": "",
            "flows/flow.py": "import a, b, c\n",
            "flows/a.py": "",
            "a.py": "",
            "b.py": "",
            "src/b.py": "",
            "src/c/__init__.py": "",
            "c": "not a module",
        },
    )
    assert paths(tmp_path / "flows/flow.py") == {
        "flows/flow.py",
        "flows/a.py",
        "b.py",
        "src/c/__init__.py",
    }


def test_a_package_wins_over_a_module_file_of_the_same_name(tmp_path: Path) -> None:
    make(
        tmp_path,
        {"pyproject.toml": "", "flow.py": "import a", "a.py": "", "a/__init__.py": ""},
    )
    assert paths(tmp_path / "flow.py") == {"flow.py", "a/__init__.py"}


def test_the_standard_library_and_installed_packages_are_left_out(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            "pyproject.toml": "",
            "flow.py": "import json.tool, pydantic, os.path, does_not_exist\n",
            "json/tool.py": "a folder without __init__ doesn't hide the standard library",
        },
    )
    assert paths(tmp_path / "flow.py") == {"flow.py"}


def test_cycles_end(tmp_path: Path) -> None:
    make(
        tmp_path,
        {"pyproject.toml": "", "flow.py": "import a", "a.py": "import b", "b.py": "import a, flow"},
    )
    assert paths(tmp_path / "flow.py") == {"flow.py", "a.py", "b.py"}


def test_the_root_is_the_nearest_marker_upward(tmp_path: Path) -> None:
    make(tmp_path, {".git/HEAD": "", "inner/pyproject.toml": "", "inner/x/flow.py": ""})
    assert build(tmp_path / "inner/x/flow.py").root == (tmp_path / "inner").resolve()
    make(tmp_path, {"outer/flow.py": "", "shared.py": "", "outer/flow2.py": "import shared"})
    assert build(tmp_path / "outer/flow.py").root == tmp_path.resolve()
    assert paths(tmp_path / "outer/flow2.py") == {"outer/flow2.py", "shared.py"}


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("flow.py", "flow"),
        ("my-flow.py", "my-flow"),
        ("top/flow.py", "flow"),
        ("pkg/flow.py", "pkg.flow"),
        ("pkg/sub/flow.py", "pkg.sub.flow"),
        ("pkg/__init__.py", "pkg"),
        ("lib/tool/__init__.py", "tool"),
    ],
)
def test_the_entry_is_named_from_the_folder_above_its_topmost_package(
    tmp_path: Path, name: str, module: str
) -> None:
    make(
        tmp_path,
        {
            "pyproject.toml": "",
            "top/README": "",
            "pkg/__init__.py": "",
            "pkg/sub/__init__.py": "",
            "lib/tool/__init__.py": "",
        },
    )
    if not (tmp_path / name).exists():
        make(tmp_path, {name: ""})
    bundle = build(tmp_path / name)
    assert bundle.manifest.module == module
    top = (tmp_path / name).parent
    while (top / "__init__.py").exists():
        top = top.parent
    assert top.relative_to(tmp_path).as_posix().strip(".") in bundle.manifest.import_roots


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for name in ["nothing.py", "folder"]:
        (tmp_path / "folder").mkdir(exist_ok=True)
        with pytest.raises(BundleError, match=name) as caught:
            build(tmp_path / name)
        assert caught.value.code == "FILE_NOT_FOUND"


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("x = 1\nif True\n    pass\n", "flow.py:2"),
        (b"x = 1\n\0", "flow.py"),
        (b"# coding: nonsense\n", "flow.py"),
        ("x = " + "(" * 2000, "flow.py"),
        (b"x = '\xff'\n", "flow.py"),
    ],
)
def test_an_entry_that_is_not_python_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, where: str
) -> None:
    make(tmp_path, {"flow.py": content})
    with pytest.raises(BundleError) as caught:
        build(tmp_path / "flow.py")
    assert caught.value.code == "SYNTAX_ERROR"
    assert caught.value.message.startswith(where)


def test_another_module_that_is_not_python_is_taken_as_it_is(tmp_path: Path) -> None:
    make(tmp_path, {"flow.py": "if 0:\n    import old\n", "old.py": "print 'python 2'\n"})
    assert paths(tmp_path / "flow.py") == {"flow.py", "old.py"}


def test_an_entry_named_like_a_module_of_python_is_refused(tmp_path: Path) -> None:
    make(tmp_path, {"json.py": ""})
    with pytest.raises(BundleError) as caught:
        build(tmp_path / "json.py")
    assert caught.value.code == "ENTRY_NAME_TAKEN"


INCLUDE = """
from smithers.workflow import workflow

@workflow(input=int, include={patterns})
def flow(ctx): ...
"""


def test_included_files_are_found_from_the_entrys_folder(tmp_path: Path) -> None:
    patterns = ["prompts/*.md", "../shared/rules.txt", "data", "deep/**/*.j2"]
    make(
        tmp_path,
        {
            "pyproject.toml": "",
            "flows/flow.py": INCLUDE.format(patterns=patterns),
            "flows/prompts/a.md": "a",
            "flows/prompts/b.txt": "b",
            "flows/data/x.bin": b"\0\xff",
            "flows/data/sub/y": "y",
            "flows/data/.hidden": "no",
            "flows/data/__pycache__/z.pyc": "no",
            "flows/deep/1/2/t.j2": "t",
            "shared/rules.txt": "r",
        },
    )
    bundle = build(tmp_path / "flows/flow.py")
    assert set(bundle.contents) == {
        "flows/flow.py",
        "flows/prompts/a.md",
        "flows/data/x.bin",
        "flows/data/sub/y",
        "flows/deep/1/2/t.j2",
        "shared/rules.txt",
    }
    assert bundle.contents["flows/data/x.bin"] == b"\0\xff"


@pytest.mark.parametrize(
    ("patterns", "code"),
    [
        ("['missing.md']", "FILE_NOT_FOUND"),
        ("['*.md']", "FILE_NOT_FOUND"),
        ("['/etc/passwd']", "INCLUDE_REFUSED"),
        ("['../outside.txt']", "INCLUDE_REFUSED"),
        ("['*/../../outside.txt']", "INCLUDE_REFUSED"),
        ("FILES", "INCLUDE_REFUSED"),
        ("[f'{x}.md']", "INCLUDE_REFUSED"),
    ],
)
def test_an_include_that_cannot_be_followed_is_refused(
    tmp_path: Path, patterns: str, code: str
) -> None:
    make(tmp_path, {"project/pyproject.toml": "", "outside.txt": "secret"})
    make(tmp_path, {"project/flow.py": INCLUDE.format(patterns=patterns)})
    with pytest.raises(BundleError) as caught:
        build(tmp_path / "project/flow.py")
    assert caught.value.code == code


def test_a_file_above_the_bound_is_refused(tmp_path: Path) -> None:
    make(tmp_path, {"flow.py": INCLUDE.format(patterns=["big.bin"])})
    with (tmp_path / "big.bin").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    with pytest.raises(BundleError, match=r"big\.bin") as caught:
        build(tmp_path / "flow.py")
    assert caught.value.code == "BUNDLE_TOO_LARGE"
