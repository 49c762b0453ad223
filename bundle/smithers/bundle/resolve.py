"""Find the file of a module below a project's import roots, the way that Python's path finder
would.

In one folder a package wins over a module file; a folder without `__init__` counts only when
nothing else of that name is on the whole path (PEP 420), and then all such folders are one
package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path

_SUFFIXES = (*EXTENSION_SUFFIXES, *SOURCE_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Found:
    """A module of the project. `file` is None for a namespace package; `search` is a package's
    path, else ().
    """

    name: str
    file: Path | None
    search: tuple[Path, ...]

    @property
    def package(self) -> str:
        """What relative imports in this module start from."""
        return self.name if self.search else self.name.rpartition(".")[0]


class Resolver:
    """Resolves dotted names below the import roots, each one once."""

    def __init__(self, import_roots: Sequence[Path]) -> None:
        self._roots = tuple(import_roots)
        self._known: dict[str, Found | None] = {}

    def find(self, name: str) -> Found | None:
        """Return the project's module of this dotted name, or None: it is another distribution's or
        isn't there.
        """
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Found | None:
        parent, _, last = name.rpartition(".")
        if not last:
            return None
        if not parent:
            found = _search(name, last, self._roots)
            # A mere folder called `json` doesn't hide the standard library's module.
            shadowed = found is not None and not found.file and name in sys.stdlib_module_names
            return None if shadowed else found
        package = self.find(parent)
        return _search(name, last, package.search) if package and package.search else None


def _search(name: str, last: str, folders: tuple[Path, ...]) -> Found | None:
    portions: list[Path] = []
    for folder in folders:
        package = folder / last
        init = _first_file(package, "__init__") if package.is_dir() else None
        if init is not None:
            return Found(name, init, (package,))
        module = _first_file(folder, last)
        if module is not None:
            return Found(name, module, ())
        if package.is_dir():
            portions.append(package)
    return Found(name, None, tuple(portions)) if portions else None


def _first_file(folder: Path, stem: str) -> Path | None:
    for suffix in _SUFFIXES:
        path = folder / f"{stem}{suffix}"
        if path.is_file():
            return path
    return None
