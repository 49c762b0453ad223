"""A bundle's files as one blob: a gzipped POSIX tar, so that a person can open it with tar alone.

Every header field that a machine could leave its mark in is fixed, so equal bundles give equal
bytes. Nothing is ever extracted by tarfile: members are read one by one and compared with the
manifest.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from smithers.bundle.errors import BUNDLE_CORRUPT, BundleError
from smithers.bundle.hash import content_hash, source_hash
from smithers.bundle.manifest import MAX_FILES, MAX_TOTAL_BYTES, Manifest

_TAR_OVERHEAD_PER_FILE: Final = 4 * 1024  # headers, a long name, padding
_GZIP: Final = 16 + zlib.MAX_WBITS


def pack(contents: Mapping[str, bytes]) -> bytes:
    """Return the blob of these files; the same files give the same bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(contents.items()):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o444
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), compresslevel=6, mtime=0)


def unpack(manifest: Manifest, body: bytes) -> dict[str, bytes]:
    """Return the files of a blob, proved to be exactly those that the manifest and its hash name.

    Raises BUNDLE_CORRUPT for any other bytes, names that leave the folder, links, and blobs that
    grow beyond the bounds when they are decompressed.
    """
    if len(manifest.files) > MAX_FILES:
        raise _corrupt("it names too many files")
    if source_hash(manifest.entry, manifest.files) != manifest.source_hash:
        raise _corrupt("its file list doesn't give its hash")
    for path in (manifest.entry, *(file.path for file in manifest.files)):
        check_name(path)
    for root in manifest.import_roots:
        if root:
            check_name(root)
    contents = _members(_decompress(body))
    if contents.keys() != {file.path for file in manifest.files}:
        raise _corrupt("its blob holds other files than its manifest")
    for file in manifest.files:
        if content_hash(contents[file.path]) != file.sha256:
            raise _corrupt(f"the content of {file.path} is another one", path=file.path)
    return contents


def check_name(name: str) -> None:
    """Refuse a path that isn't a plain one below the bundle's folder. Raises BUNDLE_CORRUPT."""
    path = PurePosixPath(name)
    plain = path.as_posix() == name and not path.is_absolute() and ".." not in path.parts
    if not plain or name in {"", "."} or "\0" in name or "\\" in name:
        raise _corrupt(f"the path {name!r} leaves the folder", path=name)


def _decompress(body: bytes) -> bytes:
    limit = MAX_TOTAL_BYTES + MAX_FILES * _TAR_OVERHEAD_PER_FILE
    inflater = zlib.decompressobj(_GZIP)
    try:
        raw = inflater.decompress(body, limit)
    except zlib.error as error:
        raise _corrupt("its blob isn't gzip data") from error
    if not inflater.eof:
        raise _corrupt("its blob is cut off or too large")
    return raw


def _members(raw: bytes) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is None:
                    raise _corrupt(f"{member.name!r} isn't a regular file", path=member.name)
                contents[member.name] = stream.read()
    except (tarfile.TarError, EOFError) as error:
        raise _corrupt("its blob isn't a tar archive") from error
    return contents


def _corrupt(reason: str, **details: object) -> BundleError:
    return BundleError(BUNDLE_CORRUPT, f"the stored bundle is damaged: {reason}", details=details)
