"""The module graph of a workflow: every file of the project that importing the entry can load."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from smithers.bundle.errors import SYNTAX_ERROR, BundleError
from smithers.bundle.imports import Import, exported_names, find_imports, parse
from smithers.bundle.resolve import Found, Resolver
from smithers.bundle.roots import Project, relative_name


def module_files(project: Project) -> Iterator[Path]:
    """Yield the entry file and the file of each project module that it imports, transitively, once
    each.

    Imports in functions and in branches that are never taken count too. Raises SYNTAX_ERROR when
    the entry can't be parsed; another module that can't be is yielded as it is, and fails when it
    is imported.
    """
    resolver = Resolver(project.import_roots)
    search = (project.entry.parent,) if project.entry.stem == "__init__" else ()
    entry = Found(project.module, project.entry, search)
    seen: set[str] = set()
    queue: deque[Found] = deque([entry, *_parents(project.module, resolver)])
    yielded: set[Path] = set()
    while queue:
        module = queue.popleft()
        if module.name in seen:
            continue
        seen.add(module.name)
        if module.file is None:
            continue
        if module.file not in yielded:
            yielded.add(module.file)
            yield module.file
        tree = _tree(module, project)
        if tree is not None:
            for imported in find_imports(tree, package=module.package):
                queue.extend(_modules(imported, resolver))


def _modules(imported: Import, resolver: Resolver) -> Iterator[Found]:
    """Yield the module, the packages above it, and those of its names that are modules."""
    yield from _parents(imported.module, resolver)
    found = resolver.find(imported.module)
    if found is None:
        return
    yield found
    names = list(imported.names)
    if imported.star and found.file is not None:
        names += _exported(found)
    for name in names:
        submodule = resolver.find(f"{found.name}.{name}")
        if submodule is not None:
            yield submodule


def _parents(name: str, resolver: Resolver) -> Iterator[Found]:
    parts = name.split(".")
    for count in range(1, len(parts)):
        found = resolver.find(".".join(parts[:count]))
        if found is not None:
            yield found


def _exported(module: Found) -> tuple[str, ...]:
    if module.file is None or module.file.suffix != ".py":
        return ()
    try:
        return exported_names(parse(module.file.read_bytes(), path=module.name))
    except (BundleError, OSError):
        return ()


def _tree(module: Found, project: Project) -> ast.Module | None:
    if module.file is None or module.file.suffix != ".py":
        return None  # an extension module: its bytes are all there is
    try:
        return parse(module.file.read_bytes(), path=relative_name(module.file, project.root))
    except OSError:
        return None  # gone since it was found: the builder says so when it reads it
    except BundleError as error:
        if module.file == project.entry and error.code == SYNTAX_ERROR:
            raise
        return None
