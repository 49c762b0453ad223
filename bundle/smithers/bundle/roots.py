"""Where a project begins, and where Python looks for its modules."""

from __future__ import annotations

import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from smithers.bundle.errors import ENTRY_NAME_TAKEN, FILE_NOT_FOUND, BundleError

ROOT_MARKERS: Final = ("pyproject.toml", ".git")


@dataclass(frozen=True, slots=True)
class Project:
    """An entry file in its project; every path is absolute and free of symbolic links.

    `module` is the entry's dotted name; `import_roots` are folders below or equal to `root`, in the
    order of `sys.path`.
    """

    root: Path
    entry: Path
    module: str
    import_roots: tuple[Path, ...]


def find_project(entry: Path) -> Project:
    """Locate the project of `entry`. Raises FILE_NOT_FOUND, or ENTRY_NAME_TAKEN for a name of
    Python's own.
    """
    try:
        path = entry.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise BundleError(
            FILE_NOT_FOUND, f"there is no file {entry}", details={"path": str(entry)}
        ) from error
    if not path.is_file():
        raise BundleError(FILE_NOT_FOUND, f"{entry} isn't a file", details={"path": str(entry)})
    root = _project_root(path)
    top = _package_parent(path, root)
    stem = () if path.stem == "__init__" and path.parent != top else (path.stem,)
    module = ".".join([*path.parent.relative_to(top).parts, *stem])
    if "." not in module and module in sys.stdlib_module_names:
        raise BundleError(
            ENTRY_NAME_TAKEN,
            f"{path.name} has the name of a module of Python itself",
            details={"path": str(path), "module": module},
            hint="give the file another name",
        )
    # The folder above the topmost package is usually one of the first three.
    candidates = [path.parent, root, root / "src", top]
    roots = [folder for folder in dict.fromkeys(candidates) if folder.is_dir()]
    return Project(root=root, entry=path, module=module, import_roots=tuple(roots))


def relative_name(path: Path, root: Path) -> str:
    """Return `path` as an NFC POSIX path from `root`; "" is the root itself. `path` lies below
    `root`.
    """
    relative = PurePosixPath(path.relative_to(root)).as_posix()
    return "" if relative == "." else unicodedata.normalize("NFC", relative)


def _project_root(entry: Path) -> Path:
    for folder in entry.parents:
        if any((folder / marker).exists() for marker in ROOT_MARKERS):
            return folder
    return entry.parent


def _package_parent(entry: Path, root: Path) -> Path:
    """Return the folder above the topmost package that holds `entry`, `root` at the highest."""
    folder = entry.parent
    while folder != root and (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder
