"""What a dump holds, read without a database."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from smithers.sql.archive.errors import (
    DUMP_INVALID,
    PG_PROGRAMS_TOO_OLD,
    ArchiveError,
)
from smithers.sql.database_errors import SchemaError
from smithers.sql.embedded.complaint import complaint
from smithers.sql.schema import Applied
from smithers.sql.schema_files import migrations

_ENTRY = re.compile(r"\d+; \d+ \d+ ([A-Z][A-Z ]*[A-Z]) (\S+) (\S+)")
_OURS = re.compile(r"smithers(_p\d+)?")
_NEEDED = {("TABLE DATA", "smithers", name) for name in ("migrations", "runs", "run_state")}
_PLACELESS = frozenset({"ENCODING", "STDSTRINGS", "SEARCHPATH", "COMMENT", "ACL", "SCHEMA"})


@dataclass(frozen=True, slots=True)
class Contents:
    """A dump's Postgres version, its size in bytes, and the migrations that it has."""

    path: Path
    major: int
    size: int
    applied: tuple[Applied, ...]


def read_contents(path: Path, pg_restore: Path) -> Contents:
    """Look into a dump. Raises `ArchiveError` for a file that isn't a whole one of Smithers."""
    listed = _restore(pg_restore, path, "--list").decode(errors="replace")
    entries = {found.groups() for found in map(_ENTRY.match, listed.splitlines()) if found}
    missing = _NEEDED - entries
    foreign = sorted(
        {name if kind == "SCHEMA" else place for kind, place, name in entries if _is_foreign(kind)}
        - {"-"}
    )
    foreign = [name for name in foreign if not _OURS.fullmatch(name)]
    if missing or foreign:
        what = f"it holds a schema {foreign[0]}" if foreign else "it has no Smithers tables"
        raise ArchiveError(
            DUMP_INVALID,
            f"{path} is no dump of a Smithers database: {what}",
            details={"foreign": foreign, "missing": sorted(name for _, _, name in missing)},
            hint="smithers db dump FILE makes one",
        )
    version = re.search(r"Dumped from database version: (\d+)", listed)
    return Contents(
        path,
        int(version.group(1)) if version else 0,
        path.stat().st_size,
        _applied(pg_restore, path),
    )


def _is_foreign(kind: str) -> bool:
    return kind == "SCHEMA" or kind not in _PLACELESS


def _applied(pg_restore: Path, path: Path) -> tuple[Applied, ...]:
    """The rows of `smithers.migrations`, out of the COPY block in which they are stored."""
    only = ("--data-only", "--schema=smithers", "--table=migrations", "--file=-")
    text = _restore(pg_restore, path, *only).decode()
    block = re.search(
        r"^COPY smithers\.migrations \(([^)]*)\) FROM stdin;\n(.*?)^\\\.$",
        text,
        re.MULTILINE | re.DOTALL,
    )
    names = block.group(1).split(", ") if block else []
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in _lines(block)]
    return tuple(
        Applied(int(row["number"]), row["name"], row["checksum"], row["breaking"] == "t")
        for row in rows
    )


def _lines(block: re.Match[str] | None) -> list[str]:
    return block.group(2).splitlines() if block else []


def refuse_schema(contents: Contents) -> None:
    """Raise `SchemaError` for a dump whose tables this release couldn't bring to its own."""
    known = {migration.number: migration for migration in migrations()}
    for applied in contents.applied:
        mine = known.get(applied.number)
        if mine is None and applied.breaking:
            raise SchemaError(
                "SCHEMA_TOO_NEW",
                f"{contents.path} was made by a later release of Smithers ({applied.name})",
                details={"migration": applied.name},
                hint="update smithers-fleet",
            )
        if mine is not None and mine.checksum != applied.checksum:
            raise SchemaError(
                "SCHEMA_CHANGED",
                f"{contents.path} has another {mine.name} than this release",
                details={"migration": mine.name, "ours": mine.checksum, "has": applied.checksum},
                hint="use the release that made the dump",
            )


def _restore(pg_restore: Path, path: Path, *options: str) -> bytes:
    """What pg_restore prints of a dump."""
    done = subprocess.run(
        [pg_restore, *options, path], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode == 0:
        return done.stdout
    cause = complaint(done.stderr)
    if "unsupported version" in cause:
        raise ArchiveError(
            PG_PROGRAMS_TOO_OLD,
            f"{pg_restore} is older than the pg_dump that made {path}: {cause}",
            details={"cause": cause, "pg_restore": str(pg_restore)},
            hint="set SMITHERS_PG_BINDIR to the folder with programs of a later Postgres",
        )
    raise ArchiveError(
        DUMP_INVALID,
        f"{path} is not a whole dump: {cause}",
        details={"cause": cause},
        hint="smithers db dump FILE makes one",
    )
