"""Read `@workflow(include=[…])` from the source, and find the files that it names."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from smithers.bundle.errors import FILE_NOT_FOUND, INCLUDE_REFUSED, BundleError

_MAGIC = frozenset("*?[")


def include_patterns(tree: ast.Module, *, path: str) -> tuple[str, ...]:
    """Return the patterns of every `@workflow(…, include=…)` in a module; `path` is for messages.

    Raises INCLUDE_REFUSED unless they are a literal list or tuple of strings: the files are part
    of the version's name, which is computed without running the code.
    """
    patterns: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_workflow(node.func):
            for keyword in node.keywords:
                if keyword.arg == "include":
                    patterns += _literal(keyword.value, path)
    return tuple(patterns)


def included_files(patterns: tuple[str, ...], *, folder: Path, root: Path) -> Iterator[Path]:
    """Yield the files that the patterns name, from the entry's `folder`; `**` and the other globs
    work.

    Raises FILE_NOT_FOUND for a pattern without a file, INCLUDE_REFUSED for one that leaves `root`.
    """
    for pattern in patterns:
        if Path(pattern).is_absolute() or "\0" in pattern:
            raise _outside(pattern)
        literal, glob = _split(pattern)
        base = Path(os.path.normpath(folder / literal))
        if not base.is_relative_to(root) or ".." in Path(glob).parts:
            raise _outside(pattern)
        found = [path for path in _expand(base, glob) if path.is_file()]
        if not found:
            raise BundleError(
                FILE_NOT_FOUND,
                f"include={pattern!r} names no file below {folder}",
                details={"pattern": pattern, "folder": str(folder)},
            )
        yield from found


def _expand(base: Path, glob: str) -> list[Path]:
    if not glob and not base.is_dir():
        return [base]
    # A folder or a wildcard never means .git, .venv or __pycache__; those have to be named.
    found = sorted(base.glob(glob or "**/*"))
    return [path for path in found if not any(map(_hidden, path.relative_to(base).parts))]


def _hidden(part: str) -> bool:
    return part.startswith(".") or part == "__pycache__"


def _split(pattern: str) -> tuple[str, str]:
    """Split a pattern into leading literal folders and the rest, which begins with a wildcard."""
    parts = Path(pattern).parts
    for index, part in enumerate(parts):
        if _MAGIC & set(part):
            return str(Path(*parts[:index])), str(Path(*parts[index:]))
    return pattern, ""


def _is_workflow(function: ast.expr) -> bool:
    match function:
        case ast.Name(id="workflow") | ast.Attribute(attr="workflow"):
            return True
        case _:
            return False


def _literal(value: ast.expr, path: str) -> list[str]:
    match value:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            names = [item.value for item in items if isinstance(item, ast.Constant)]
            texts = [name for name in names if isinstance(name, str)]
            if len(texts) == len(items):
                return texts
        case _:
            pass
    raise BundleError(
        INCLUDE_REFUSED,
        f"{path}:{value.lineno}: include= has to be a literal list of strings",
        details={"path": path, "line": value.lineno},
        hint="write the file names into the list; globs are allowed",
    )


def _outside(pattern: str) -> BundleError:
    return BundleError(
        INCLUDE_REFUSED,
        f"include={pattern!r} leaves the project's root",
        details={"pattern": pattern},
        hint="name files below the folder that holds pyproject.toml or .git",
    )
