"""Load a workflow from an unpacked bundle, in a process that will load no other."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from smithers.bundle.errors import (
    BUNDLE_LOADED,
    ENTRY_NAME_TAKEN,
    WORKFLOW_AMBIGUOUS,
    WORKFLOW_NOT_FOUND,
    BundleError,
)
from smithers.bundle.failure import import_failure
from smithers.bundle.manifest import Manifest
from smithers.bundle.unpack import read_manifest
from smithers.workflow.definition import Workflow

_MARK = "smithers.bundle.active"  # in sys.modules: what is loaded belongs to the interpreter


def activate(path: Path) -> Manifest:
    """Put the import roots of the bundle unpacked at `path` first on `sys.path`; again is fine.

    Raises BUNDLE_LOADED if this process has activated another bundle: modules of two versions
    under one name would mix.
    """
    folder = path.resolve()
    manifest = read_manifest(folder)
    active = sys.modules.get(_MARK)
    if active is not None:
        if active.__name__ == manifest.source_hash:
            return manifest
        raise BundleError(
            BUNDLE_LOADED,
            f"this process runs the code version {active.__name__[:12]} and can't load another",
            details={"active": active.__name__, "asked": manifest.source_hash},
        )
    sys.modules[_MARK] = ModuleType(manifest.source_hash)
    roots = [str(folder / root) if root else str(folder) for root in manifest.import_roots]
    sys.path[:0] = [root for root in roots if Path(root).is_dir()]
    importlib.invalidate_caches()
    return manifest


def import_entry(path: Path) -> ModuleType:
    """Activate the bundle at `path` and import its entry under its proper name.

    Raises IMPORT_FAILED with the last line and file:line of whatever the import raised
    (SystemExit too), SYNTAX_ERROR, ENVIRONMENT_MISSING for a distribution that isn't installed,
    ENTRY_NAME_TAKEN.
    """
    folder = path.resolve()
    manifest = activate(folder)
    try:
        return _import_entry(folder, manifest)
    except BundleError:
        raise
    except BaseException as error:
        raise import_failure(error, folder, manifest) from error


def load_workflow(path: Path, name: str | None = None) -> Workflow:
    """Load the workflow called `name` from the bundle at `path`; None when the entry defines only
    one.

    `name` is that of the variable or of the workflow itself. Raises what `import_entry` raises, and
    WORKFLOW_NOT_FOUND or WORKFLOW_AMBIGUOUS, which name the candidates.
    """
    entry = import_entry(path)
    candidates = _candidates(entry)
    if name is not None:
        chosen = [item for key, item in candidates.items() if name in {key, item.name}]
    else:
        chosen = list(candidates.values())
    names = sorted(candidates)
    file = read_manifest(path).entry
    details = {"candidates": names, "path": file}
    if not chosen:
        wanted = f"workflow {name!r}" if name else "workflow"
        raise BundleError(
            WORKFLOW_NOT_FOUND,
            f"{file} defines no {wanted}",
            details=details,
            hint=f"it defines {', '.join(names)}"
            if names
            else "decorate a function with @workflow",
        )
    if len(chosen) > 1:
        raise BundleError(
            WORKFLOW_AMBIGUOUS,
            f"{file} defines several workflows: {', '.join(names)}",
            details=details,
            hint=f"say which one: {file}:{names[0]}",
        )
    return chosen[0]


def _import_entry(folder: Path, manifest: Manifest) -> ModuleType:
    file = folder / manifest.entry
    parent, _, _ = manifest.module.rpartition(".")
    if parent and file.name != "__init__.py" and "." not in file.stem:
        module = importlib.import_module(manifest.module)
    elif manifest.module in sys.modules:
        module = sys.modules[manifest.module]
    else:
        module = _execute(manifest.module, file)
    if Path(module.__file__ or "").resolve() != file:
        raise BundleError(
            ENTRY_NAME_TAKEN,
            f"{manifest.entry} would be the module {manifest.module}, which is {module.__file__}",
            details={"path": manifest.entry, "module": manifest.module},
            hint="give the file another name",
        )
    return module


def _execute(name: str, file: Path) -> ModuleType:
    """Import a file under a name, whatever characters the name has."""
    packages = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=packages)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return sys.modules.get(name, module)


def _candidates(entry: ModuleType) -> dict[str, Workflow]:
    """Return the workflows that the entry defines, by variable; those that it imports if it defines
    none.
    """
    found: dict[str, Workflow] = {}
    for key, value in vars(entry).items():
        if isinstance(value, Workflow) and value not in found.values():
            found[key] = value
    own = {
        key: value
        for key, value in found.items()
        if getattr(value, "__module__", None) == entry.__name__
    }
    return own or found
