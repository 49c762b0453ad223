from __future__ import annotations

import gzip
import io
import os
import tarfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from smithers.bundle.build import build
from smithers.bundle.errors import BundleError
from smithers.bundle.hash import content_hash, source_hash
from smithers.bundle.manifest import MANIFEST_NAME, Bundle, Manifest, SourceFile
from smithers.bundle.pack import pack, unpack
from smithers.bundle.store import Stored
from smithers.bundle.unpack import ensure, read_manifest


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    folder = tmp_path / "checkout"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    (folder / "flow.py").write_text("import pkg.tool\n")
    (folder / "pkg/__init__.py").write_text("")
    (folder / "pkg/tool.py").write_text("#!/usr/bin/env python\nx = 'ü'\n")
    return build(folder / "flow.py")


def stored(bundle: Bundle) -> Stored:
    return Stored(bundle.manifest, pack(bundle.contents))


def never(source_hash: str) -> Stored:
    raise AssertionError(f"{source_hash} was asked for")


def forged(paths: dict[str, bytes]) -> Stored:
    files = tuple(SourceFile(path, content_hash(data), len(data)) for path, data in paths.items())
    name = next(iter(paths))
    manifest = Manifest(source_hash(name, files), name, "flow", ("",), files)
    return Stored(manifest, pack(paths))


def damage(folder: Path, change: Callable[[], object]) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    change()


def test_a_manifest_survives_json(bundle: Bundle) -> None:
    assert Manifest.from_json(bundle.manifest.to_json()) == bundle.manifest
    for broken in (None, {}, {**bundle.manifest.to_json(), "format": 2}):
        with pytest.raises(BundleError):
            Manifest.from_json(broken)


def test_packing_is_deterministic_and_reversible(bundle: Bundle) -> None:
    backwards = dict(reversed(list(bundle.contents.items())))
    assert pack(bundle.contents) == pack(backwards)
    assert unpack(bundle.manifest, pack(bundle.contents)) == bundle.contents


def test_a_person_can_open_it_with_tar(bundle: Bundle) -> None:
    with tarfile.open(fileobj=io.BytesIO(pack(bundle.contents)), mode="r:gz") as archive:
        assert archive.getnames() == ["flow.py", "pkg/__init__.py", "pkg/tool.py"]


def test_unpacking_gives_a_read_only_copy(bundle: Bundle, tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = ensure(lambda _: stored(bundle), home, bundle.source_hash)
    assert folder == home / "sources" / bundle.source_hash
    assert (folder / "pkg/tool.py").read_bytes() == bundle.contents["pkg/tool.py"]
    assert read_manifest(folder) == bundle.manifest
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}
    assert modes["flow.py"] == modes[MANIFEST_NAME] == 0o444
    assert modes["tool.py"] == modes["pkg"] == modes[folder.name] == 0o555
    assert ensure(never, home, bundle.source_hash) == folder
    assert [path.name for path in (home / "sources").iterdir()] == [bundle.source_hash]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "flow.py").write_text("import os\n"),
        lambda folder: (folder / "flow.py").unlink(),
        lambda folder: (folder / MANIFEST_NAME).unlink(),
        lambda folder: (folder / "json.py").write_text("planted"),
        lambda folder: (folder / "pkg/link.py").symlink_to("/etc/passwd"),
    ],
)
def test_a_damaged_copy_is_replaced(
    bundle: Bundle, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    folder = ensure(lambda _: stored(bundle), tmp_path, bundle.source_hash)
    damage(folder, lambda: change(folder))
    assert ensure(lambda _: stored(bundle), tmp_path, bundle.source_hash) == folder
    assert ensure(never, tmp_path, bundle.source_hash) == folder
    assert [path.name for path in (tmp_path / "sources").iterdir()] == [bundle.source_hash]


def test_compiled_files_are_no_damage(bundle: Bundle, tmp_path: Path) -> None:
    folder = ensure(lambda _: stored(bundle), tmp_path, bundle.source_hash)
    damage(folder, (folder / "__pycache__").mkdir)
    (folder / "__pycache__/flow.cpython-311.pyc").write_bytes(b"")
    ensure(never, tmp_path, bundle.source_hash)


def test_many_unpackers_at_once_leave_one_copy(bundle: Bundle, tmp_path: Path) -> None:
    barrier = threading.Barrier(8)
    results: list[Path | BaseException] = []

    def fetch(_: str) -> Stored:
        barrier.wait(10)  # nobody has begun to write before everybody has looked
        return stored(bundle)

    def run() -> None:
        try:
            results.append(ensure(fetch, tmp_path, bundle.source_hash))
        except BaseException as error:  # noqa: BLE001  shown by the assertion
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [tmp_path / "sources" / bundle.source_hash] * 8
    assert [path.name for path in (tmp_path / "sources").iterdir()] == [bundle.source_hash]


def test_leftovers_of_a_killed_unpacker_go_after_an_hour(bundle: Bundle, tmp_path: Path) -> None:
    old, young = (tmp_path / "sources" / name for name in (".tmp-old", ".tmp-young"))
    for folder in (old, young):
        folder.mkdir(parents=True)
        (folder / "flow.py").write_text("")
    os.utime(old, (0, 0))
    ensure(lambda _: stored(bundle), tmp_path, bundle.source_hash)
    assert not old.exists()
    assert young.exists()


@pytest.mark.parametrize(
    "name", ["../evil.py", "/evil.py", "a/../../evil.py", "./a.py", "a//b.py", "", "a\0b", "a\\b"]
)
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    bad = forged({"flow.py": b"", name: b"evil"})
    with pytest.raises(BundleError) as caught:
        ensure(lambda _: bad, tmp_path, bad.manifest.source_hash)
    assert caught.value.code == "BUNDLE_CORRUPT"
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("root", ["..", "/tmp", "a/../.."])
def test_an_import_root_that_leaves_the_folder_is_refused(
    bundle: Bundle, tmp_path: Path, root: str
) -> None:
    bad = Stored(replace(bundle.manifest, import_roots=("", root)), pack(bundle.contents))
    with pytest.raises(BundleError):
        ensure(lambda _: bad, tmp_path, bundle.source_hash)


def linked(_: Bundle) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("flow.py")
        member.type = tarfile.SYMTYPE
        member.linkname = "/etc/passwd"
        archive.addfile(member)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "body",
    [
        lambda bundle: pack({**bundle.contents, "flow.py": b"other"}),
        lambda bundle: pack({**bundle.contents, "more.py": b""}),
        lambda bundle: pack({"flow.py": bundle.contents["flow.py"]}),
        lambda bundle: pack(bundle.contents)[:-20],
        lambda _: b"not gzip",
        lambda _: gzip.compress(b"not tar" * 1000),
        lambda _: gzip.compress(bytes(86 * 1024 * 1024), compresslevel=1),
        linked,
    ],
)
def test_other_bytes_than_the_hash_names_are_refused(
    bundle: Bundle, tmp_path: Path, body: Callable[[Bundle], bytes]
) -> None:
    bad = Stored(bundle.manifest, body(bundle))
    with pytest.raises(BundleError) as caught:
        ensure(lambda _: bad, tmp_path, bundle.source_hash)
    assert caught.value.code == "BUNDLE_CORRUPT"
    assert not (tmp_path / "sources" / bundle.source_hash).exists()


def test_a_stored_bundle_of_another_hash_is_refused(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        ensure(lambda _: stored(bundle), tmp_path, "0" * 64)
    for name in ("../../etc", "A" * 64, ""):
        with pytest.raises(BundleError):
            ensure(never, tmp_path, name)
