"""What differs between the code that a run began with and the file at hand."""

from __future__ import annotations

from dataclasses import dataclass, field

from smithers.bundle.manifest import Bundle
from smithers.operations.errors import RESUME_METADATA_MISMATCH, OperationError
from smithers.operations.vcs import Checkout
from smithers.sql.rows import Json


@dataclass(frozen=True, slots=True)
class Drift:
    """`place` (path, root) can't be waived; `source` can. Each maps a name to (stored, current)."""

    place: dict[str, tuple[str | None, str | None]] = field(
        default_factory=dict[str, tuple[str | None, str | None]]
    )
    source: tuple[str, str] | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a bundle that differ from those of another, by path."""

    changed: list[str]
    added: list[str]
    removed: list[str]

    def __str__(self) -> str:
        words = [
            *(f"{path} changed" for path in self.changed),
            *(f"{path} is new" for path in self.added),
            *(f"{path} is gone" for path in self.removed),
        ]
        more = f" and {len(words) - 8} more" if len(words) > 8 else ""
        return ", ".join(words[:8]) + more


def compare(stored: Json, bundle: Bundle, path: str, checkout: Checkout) -> Drift:
    """Compare a stored run with the bundle built from a file."""
    place: dict[str, tuple[str | None, str | None]] = {}
    if stored["path"] != path:
        place["path"] = (stored["path"], path)
    if stored["vcs_root"] != checkout.root:
        place["vcs_root"] = (stored["vcs_root"], checkout.root)
    same = stored["source_hash"] == bundle.source_hash
    return Drift(place, None if same else (stored["source_hash"], bundle.source_hash))


def differing_files(stored: Json | None, current: Bundle) -> Files:
    """Compare a stored manifest with a bundle, file by file."""
    before = {path: sha256 for path, sha256, _ in (stored or {}).get("files", [])}
    now = {file.path: file.sha256 for file in current.manifest.files}
    return Files(
        changed=sorted(path for path in before.keys() & now.keys() if before[path] != now[path]),
        added=sorted(now.keys() - before.keys()),
        removed=sorted(before.keys() - now.keys()),
    )


def mismatch(stored: Json, drift: Drift, files: Files | None = None) -> OperationError:
    """Give the refusal that names what differs and the ways on."""
    run_id = stored["run_id"]
    parts: list[str] = []
    if drift.missing is not None:
        parts.append(f"{drift.missing} is gone")
    for name, (before, now) in drift.place.items():
        label = {"path": "the path", "vcs_root": "the checkout"}[name]
        parts.append(f"{label} was {before or 'none'} and is {now or 'none'}")
    if drift.source is not None:
        parts.append(str(files) if files and str(files) else "the source differs")
    ways = ["revert", "--pinned (go on with the stored code)"]
    if drift.source and not drift.place:
        ways.append("--accept-workflow-change (go on with the new code)")
    return OperationError(
        RESUME_METADATA_MISMATCH,
        f"run {run_id} began with other code: {'; '.join(parts)}",
        details={
            "run_id": run_id,
            "place": {name: list(pair) for name, pair in drift.place.items()},
            "source": list(drift.source) if drift.source else None,
            "files": None
            if files is None
            else {"changed": files.changed, "added": files.added, "removed": files.removed},
        },
        hint=" · ".join(ways),
    )
