"""A bundle as a value: which files, which one is the entry, and how Python finds them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from smithers.bundle.errors import BUNDLE_CORRUPT, BundleError

FORMAT: Final = 1
MANIFEST_NAME: Final = ".smithers-bundle.json"

# A bundle is source code: these are far above any real one, and keep a wrong `include=` out.
MAX_FILES: Final = 5_000
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
MAX_TOTAL_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: its NFC POSIX path from the root, the SHA-256 of its bytes in hex, and its size in
    bytes.
    """

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about a bundle but its bytes; equal for every checkout of the same code.

    `entry` is a path from the root, `module` the name that it is imported under, `import_roots` the
    folders (from the root, "" is the root itself) that go first on `sys.path`, in this order.
    """

    source_hash: str
    entry: str
    module: str
    import_roots: tuple[str, ...]
    files: tuple[SourceFile, ...]

    def to_json(self) -> dict[str, object]:
        """Return the JSON document that `from_json` reads."""
        return {
            "format": FORMAT,
            "source_hash": self.source_hash,
            "entry": self.entry,
            "module": self.module,
            "import_roots": list(self.import_roots),
            "files": [[file.path, file.sha256, file.size] for file in self.files],
        }

    @classmethod
    def from_json(cls, document: object) -> Manifest:
        """Read a manifest. Raises BUNDLE_CORRUPT for anything that `to_json` didn't write."""
        try:
            return cls._read(cast("dict[str, Any]", document))
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(
                BUNDLE_CORRUPT, "the bundle's manifest can't be read", details={"error": str(error)}
            ) from error

    @classmethod
    def _read(cls, document: dict[str, Any]) -> Manifest:
        if document["format"] != FORMAT:
            raise ValueError(f"unknown format {document['format']!r}")
        return cls(
            source_hash=str(document["source_hash"]),
            entry=str(document["entry"]),
            module=str(document["module"]),
            import_roots=tuple(str(root) for root in document["import_roots"]),
            files=tuple(
                SourceFile(str(path), str(sha256), int(size))
                for path, sha256, size in document["files"]
            ),
        )


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle with its bytes, as built from a checkout.

    `root` and `entry` are absolute paths on this machine and no part of the hash; `contents` maps
    each path of the manifest to its bytes.
    """

    manifest: Manifest
    contents: dict[str, bytes]
    root: Path
    entry: Path

    @property
    def source_hash(self) -> str:
        """The hash that names this version of the code: 64 lower-case hex digits."""
        return self.manifest.source_hash
