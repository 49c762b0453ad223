"""Build the bundle of an entry file: it, every project module that it imports, and what it
includes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from smithers.bundle.errors import (
    BUNDLE_TOO_LARGE,
    FILE_NOT_FOUND,
    INCLUDE_REFUSED,
    BundleError,
)
from smithers.bundle.graph import module_files
from smithers.bundle.hash import content_hash, source_hash
from smithers.bundle.imports import parse
from smithers.bundle.include import include_patterns, included_files
from smithers.bundle.manifest import (
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    Bundle,
    Manifest,
    SourceFile,
)
from smithers.bundle.roots import Project, find_project, relative_name


def build(entry: Path) -> Bundle:
    """Build the bundle of a workflow file from the checkout around it. Runs none of its code.

    Raises BundleError: FILE_NOT_FOUND, SYNTAX_ERROR, ENTRY_NAME_TAKEN, INCLUDE_REFUSED,
    BUNDLE_TOO_LARGE.
    """
    project = find_project(entry)
    contents: dict[str, bytes] = {}
    total = 0
    for path in _files(project):
        name = _bundle_name(path, project.root)
        if name in contents:
            continue
        contents[name] = _read(path, name)
        total += len(contents[name])
        if len(contents) > MAX_FILES or total > MAX_TOTAL_BYTES:
            raise BundleError(
                BUNDLE_TOO_LARGE,
                f"{project.entry.name} brings over {MAX_FILES} files or {MAX_TOTAL_BYTES} bytes",
                details={"files": len(contents), "bytes": total, "last": name},
                hint="narrow include=, or import less from the project",
            )
    return Bundle(_manifest(project, contents), contents, project.root, project.entry)


def _manifest(project: Project, contents: dict[str, bytes]) -> Manifest:
    files = tuple(
        SourceFile(name, content_hash(content), len(content))
        for name, content in sorted(contents.items())
    )
    entry = relative_name(project.entry, project.root)
    return Manifest(
        source_hash=source_hash(entry, files),
        entry=entry,
        module=project.module,
        import_roots=tuple(relative_name(path, project.root) for path in project.import_roots),
        files=files,
    )


def _files(project: Project) -> Iterator[Path]:
    yield from module_files(project)
    name = _bundle_name(project.entry, project.root)
    tree: ast.Module = parse(_read(project.entry, name), path=name)
    patterns = include_patterns(tree, path=name)
    yield from included_files(patterns, folder=project.entry.parent, root=project.root)


def _bundle_name(path: Path, root: Path) -> str:
    name = relative_name(path, root)
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BundleError(
            INCLUDE_REFUSED,
            f"the file name {name!r} isn't valid UTF-8",
            details={"path": ascii(name)},
        ) from error
    return name


def _read(path: Path, name: str) -> bytes:
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= MAX_FILE_BYTES else b""
    except OSError as error:
        raise BundleError(
            FILE_NOT_FOUND, f"{name} can't be read: {error.strerror}", details={"path": str(path)}
        ) from error
    if size > MAX_FILE_BYTES:
        raise BundleError(
            BUNDLE_TOO_LARGE,
            f"{name} has {size} bytes; a bundle takes files up to {MAX_FILE_BYTES}",
            details={"path": name, "bytes": size},
        )
    return content
