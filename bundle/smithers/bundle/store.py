"""Keep bundles in the table `sources`: written once per hash, read by whoever runs that version."""

from __future__ import annotations

from dataclasses import dataclass

from smithers.bundle.errors import BUNDLE_UNKNOWN, BundleError
from smithers.bundle.manifest import Bundle, Manifest
from smithers.bundle.pack import pack
from smithers.sql.calls import Connection
from smithers.sql.operator import get_source, put_source


@dataclass(frozen=True, slots=True)
class Stored:
    """A bundle as the table holds it: its manifest, and its files as one blob (see `pack`)."""

    manifest: Manifest
    body: bytes


def store(conn: Connection, bundle: Bundle) -> None:
    """Store a bundle; storing it again changes nothing. Commits or not as the connection does."""
    put_source(conn, bundle.source_hash, bundle.manifest.to_json(), pack(bundle.contents))


def fetch(conn: Connection, source_hash: str) -> Stored:
    """Read a bundle. Raises BUNDLE_UNKNOWN if there is none of this hash, BUNDLE_CORRUPT if it is
    unreadable.
    """
    row = get_source(conn, source_hash)
    if row is None:
        raise BundleError(
            BUNDLE_UNKNOWN,
            f"no source bundle {source_hash[:12]} is stored",
            details={"source_hash": source_hash},
        )
    return Stored(Manifest.from_json(row.manifest), row.body)
