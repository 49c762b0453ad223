"""The name of a code version: a digest of paths and contents, and of nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from smithers.bundle.manifest import SourceFile


def content_hash(content: bytes) -> str:
    """Return the SHA-256 of one file's bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def source_hash(entry: str, files: Iterable[SourceFile]) -> str:
    """Return the SHA-256, in hex, over the entry's path and the sorted (path, content hash) pairs.

    The entry is part of it because two files that import each other make the same set of files, but
    start at different places. Neither the order of `files` nor where the checkout lies changes it.
    """
    digest = hashlib.sha256(b"smithers-bundle-1\0")
    digest.update(entry.encode("utf-8", "surrogateescape") + b"\0")
    for file in sorted(files, key=lambda file: file.path):
        path = file.path.encode("utf-8", "surrogateescape")
        digest.update(path + b"\0" + file.sha256.encode("ascii") + b"\n")
    return digest.hexdigest()
