"""Make a project: one workflow, its test, editor settings. All of it or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from smithers.operations.errors import OperationError
from smithers.operations.results import Result

INIT_FILE_EXISTS: Final = "INIT_FILE_EXISTS"
INIT_FAILED: Final = "INIT_FAILED"

TEMPLATE: Final[Mapping[str, str]] = {
    "triage.py": "triage.py",
    "tests/test_triage.py": "tests/test_triage.py",
    "tickets/welcome.txt": "tickets-welcome.txt",
    "smithers.toml": "smithers.toml",
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "AGENTS.md": "AGENTS.md",
    ".gitignore": "gitignore",
    ".vscode/settings.json": "vscode/settings.json",
    ".vscode/extensions.json": "vscode/extensions.json",
}
"""Each file of a project, and the file of this package that it is a copy of."""


@dataclass(frozen=True, slots=True)
class Project(Result):
    """A project that was made: its folder, and the files in it."""

    folder: str
    files: list[str]


def initialise(folder: Path) -> Project:
    """Make a project in a folder, which is made if need be. Nothing that is there is touched.

    Raises OperationError: INIT_FILE_EXISTS with what is in the way, INIT_FAILED when something
    can't be written; what had been written is removed again.
    """
    taken = [name for name in TEMPLATE if _is_taken(folder / name)]
    if taken:
        raise OperationError(
            INIT_FILE_EXISTS,
            f"{folder} has {', '.join(taken)} already",
            details={"folder": str(folder), "files": taken},
            hint="name another folder: smithers init DIR",
        )
    made: list[Path] = []
    try:
        for name, source in TEMPLATE.items():
            _write(folder / name, source, made)
    except OSError as error:
        _remove(made)
        raise OperationError(
            INIT_FAILED,
            f"{error.filename or folder} can't be written: {error.strerror}",
            details={"folder": str(folder)},
            hint="name a folder that can be written: smithers init DIR",
        ) from error
    return Project(str(folder.resolve()), list(TEMPLATE))


def _is_taken(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _write(path: Path, source: str, made: list[Path]) -> None:
    """Write one file; `made` grows by every folder and file, in order."""
    for folder in [*reversed(path.parents)]:
        if not folder.exists():
            folder.mkdir()
            made.append(folder)
    text = (files("smithers.operations") / "template" / source).read_bytes()
    with path.open("xb") as file:
        made.append(path)
        file.write(text)


def _remove(made: list[Path]) -> None:
    for path in reversed(made):
        with suppress(OSError):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
