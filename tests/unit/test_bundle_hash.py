from __future__ import annotations

import random
import shutil
import unicodedata
from pathlib import Path

from smithers.bundle.build import build
from smithers.bundle.hash import content_hash, source_hash
from smithers.bundle.manifest import SourceFile


def project(folder: Path) -> Path:
    (folder / "lib").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    (folder / "flow.py").write_text("from lib import tool\n")
    (folder / "lib/__init__.py").write_text("")
    (folder / "lib/tool.py").write_text("x = 1\n")
    (folder / "lib/other.py").write_text("")
    return folder / "flow.py"


def test_moving_a_checkout_keeps_the_hash(tmp_path: Path) -> None:
    entry = project(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "far/away")
    assert build(entry).source_hash == build(tmp_path / "far/away/flow.py").source_hash


def test_an_edit_of_an_imported_module_changes_it_and_a_revert_brings_it_back(
    tmp_path: Path,
) -> None:
    entry = project(tmp_path)
    before = build(entry).source_hash
    (tmp_path / "lib/tool.py").write_text("x = 2\n")
    assert build(entry).source_hash != before
    (tmp_path / "lib/tool.py").write_text("x = 1\n")
    assert build(entry).source_hash == before


def test_files_that_nobody_imports_do_not_change_it(tmp_path: Path) -> None:
    entry = project(tmp_path)
    before = build(entry).source_hash
    (tmp_path / "lib/other.py").write_text("changed = True\n")
    (tmp_path / "README.md").write_text("changed")
    assert build(entry).source_hash == before


def test_a_rename_changes_it(tmp_path: Path) -> None:
    entry = project(tmp_path)
    before = build(entry).source_hash
    assert build(entry.rename(tmp_path / "flow2.py")).source_hash != before


def test_two_entries_of_the_same_files_differ(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import b\n")
    (tmp_path / "b.py").write_text("import a\n")
    one, two = build(tmp_path / "a.py"), build(tmp_path / "b.py")
    assert one.manifest.files == two.manifest.files
    assert one.source_hash != two.source_hash


def test_composed_and_decomposed_names_are_one(tmp_path: Path) -> None:
    hashes = set()
    for form in ("NFC", "NFD"):
        folder = tmp_path / form
        folder.mkdir()
        entry = folder / (unicodedata.normalize(form, "flüssig") + ".py")
        entry.write_text("")
        hashes.add(build(entry).source_hash)
    assert len(hashes) == 1


def test_the_order_of_the_files_does_not_matter() -> None:
    files = [SourceFile(f"{n}.py", content_hash(str(n).encode()), 1) for n in range(20)]
    expected = source_hash("1.py", files)
    random.Random(7).shuffle(files)
    assert source_hash("1.py", files) == expected
