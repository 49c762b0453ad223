"""Put a stored bundle on this machine's disk, read-only, once, whoever asks and however many at
once.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smithers.bundle.errors import BUNDLE_CORRUPT, BundleError
from smithers.bundle.hash import content_hash
from smithers.bundle.hash import source_hash as hash_of
from smithers.bundle.manifest import MANIFEST_NAME, Manifest
from smithers.bundle.pack import check_name, unpack

if TYPE_CHECKING:
    from smithers.bundle.store import Stored

# An unpacker that is still at work after an hour isn't: its leftovers may go.
_LEFTOVER_SECONDS: Final = 3600
_HEX_DIGITS: Final = frozenset("0123456789abcdef")


def ensure(fetch: Callable[[str], Stored], home: Path, source_hash: str) -> Path:
    """Return the folder `<home>/sources/<source_hash>` that holds exactly this bundle.

    A folder that is there is checked file by file and used; a missing or damaged one is made from
    `fetch(source_hash)` beside it and renamed into place, so that a reader never sees half of
    one. Raises BUNDLE_CORRUPT when the stored bytes aren't the bundle's, what `fetch` raises, or
    OSError of the disk.
    """
    if len(source_hash) != 64 or not _HEX_DIGITS.issuperset(source_hash):
        raise BundleError(BUNDLE_CORRUPT, f"{source_hash!r} isn't a source hash")
    sources = home / "sources"
    target = sources / source_hash
    if _intact(target, source_hash):
        return target
    stored = fetch(source_hash)
    if stored.manifest.source_hash != source_hash:
        raise BundleError(BUNDLE_CORRUPT, "the stored bundle belongs to another hash")
    contents = unpack(stored.manifest, stored.body)
    sources.mkdir(parents=True, exist_ok=True)
    _sweep(sources)
    draft = sources / f".tmp-{source_hash[:12]}-{uuid.uuid4().hex}"
    try:
        _write(draft, stored.manifest, contents)
        _move_into_place(draft, target, source_hash)
    finally:
        _remove(draft)
    return target


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an unpacked bundle. Raises BUNDLE_CORRUPT if it isn't there or
    unreadable.
    """
    try:
        return Manifest.from_json(json.loads((folder / MANIFEST_NAME).read_bytes()))
    except (OSError, ValueError) as error:
        raise BundleError(BUNDLE_CORRUPT, f"{folder} holds no bundle") from error


def _intact(folder: Path, source_hash: str) -> bool:
    """Say whether `folder` holds the files of `source_hash`, unchanged, and no others."""
    try:
        manifest = read_manifest(folder)
        if manifest.source_hash != source_hash:
            return False
        if hash_of(manifest.entry, manifest.files) != source_hash:
            return False
        for file in manifest.files:
            check_name(file.path)
            if content_hash((folder / file.path).read_bytes()) != file.sha256:
                return False
        expected = {file.path for file in manifest.files} | {MANIFEST_NAME}
        return expected == set(_names(folder))
    except (BundleError, OSError):
        return False


def _names(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_symlink() or (path.is_file() and "__pycache__" not in path.parts):
            yield path.relative_to(folder).as_posix()


def _write(folder: Path, manifest: Manifest, contents: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o555 if content.startswith(b"#!") else 0o444)
    index = folder / MANIFEST_NAME
    index.write_text(json.dumps(manifest.to_json()), encoding="utf-8")
    index.chmod(0o444)
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o555)


def _move_into_place(draft: Path, target: Path, source_hash: str) -> None:
    for _ in range(10):
        try:
            draft.rename(target)
        except OSError:  # another unpacker was first, or a damaged one is in the way
            if _intact(target, source_hash):
                return
            aside = target.with_name(f".tmp-bad-{uuid.uuid4().hex}")
            try:
                target.rename(aside)
            except FileNotFoundError:
                continue  # another one has just moved it
            _remove(aside)
        else:
            return
    raise BundleError(BUNDLE_CORRUPT, f"{target} can't be replaced")


def _sweep(sources: Path) -> None:
    """Remove what unpackers that were killed have left behind."""
    horizon = time.time() - _LEFTOVER_SECONDS
    for path in sources.glob(".tmp-*"):
        try:
            if path.stat().st_mtime < horizon:
                _remove(path)
        except FileNotFoundError:
            pass


def _remove(folder: Path) -> None:
    if not folder.exists():
        return
    for path, _, _ in os.walk(folder):
        Path(path).chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)
