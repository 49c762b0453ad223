"""Find a task's function in the bundle, fill its parameters, call it. Runs in the executor."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError

from smithers.bundle.errors import ENVIRONMENT_MISSING as BUNDLE_ENVIRONMENT_MISSING
from smithers.bundle.errors import BundleError
from smithers.bundle.failure import describe, import_failure
from smithers.bundle.load import activate, import_entry
from smithers.sql.rows import Json
from smithers.worker.outcome import ENVIRONMENT_MISSING
from smithers.workflow.attempts import OUT_OF_MEMORY, TASK_NOT_IMPORTABLE, TASK_RAISED, AttemptError
from smithers.workflow.context import event_fields
from smithers.workflow.models import load
from smithers.workflow.states import NodeKind

T = TypeVar("T")


class Code:
    """The code of one bundle, loaded as far as tasks have asked for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._manifest = activate(self.folder)
        self._found: dict[str, object] = {}

    def function(self, path: str) -> Callable[..., object]:
        """The function at `module:qualname`.

        Raises AttemptError: ENVIRONMENT_MISSING for a distribution that isn't installed here,
        else TASK_NOT_IMPORTABLE.
        """
        found = self._find(path)
        if not callable(found):
            raise AttemptError(TASK_NOT_IMPORTABLE, f"{path} is no function", {"path": path})
        return found

    def model(self, path: str) -> type[BaseModel]:
        """The pydantic model at `module:qualname`. Raises as `function`."""
        found = self._find(path)
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            raise AttemptError(TASK_NOT_IMPORTABLE, f"{path} is no model", {"path": path})
        return found

    def missing(self, error: ModuleNotFoundError) -> AttemptError | None:
        """ENVIRONMENT_MISSING if a distribution is missing, None if a module of the bundle is."""
        failure = import_failure(error, self.folder, self._manifest)
        return _not_importable(failure) if failure.code == BUNDLE_ENVIRONMENT_MISSING else None

    def _find(self, path: str) -> object:
        if path not in self._found:
            module, _, qualname = path.partition(":")
            try:
                found: object = self._module(module)
                for part in qualname.split("."):
                    found = getattr(found, part)
            except AttributeError as error:
                raise AttemptError(
                    TASK_NOT_IMPORTABLE, f"{module} has no {qualname}", {"path": path}
                ) from error
            self._found[path] = found
        return self._found[path]

    def _module(self, name: str) -> object:
        try:
            if name == self._manifest.module:
                return import_entry(self.folder)
            # The entry first: what it does at import may matter to the module.
            import_entry(self.folder)
            return importlib.import_module(name)
        except BundleError as error:
            raise _not_importable(error) from error
        except BaseException as error:
            failure = import_failure(error, self.folder, self._manifest)
            raise _not_importable(failure) from error


def prepare(code: Code, descriptor: Json, needs: Mapping[str, Json | None]) -> Callable[[], object]:
    """Load what the body of a compute task needs, and give the body. Raises AttemptError."""
    function = code.function(str(descriptor["run"]))
    partial = descriptor.get("partial") or {}
    keywords = {**partial.get("kwargs", {}), **(descriptor.get("args") or {})}
    for need in descriptor.get("needs") or ():
        keywords[need["param"]] = _need(code, need, needs.get(need["param"]))
    return lambda: _run(function, partial.get("args", []), keywords)


def guarded(code: Code, body: Callable[[], T]) -> T:
    """Run user code; whatever it raises becomes an AttemptError, SystemExit too."""
    try:
        return body()
    except AttemptError:
        raise
    except MemoryError as error:
        raise AttemptError(OUT_OF_MEMORY, "the body ran out of memory (MemoryError)") from error
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and (missing := code.missing(error)):
            raise missing from error
        failure = describe(error, code.folder)
        raise AttemptError(TASK_RAISED, failure.message, failure.details()) from error


def _run(
    function: Callable[..., object], args: list[object], keywords: dict[str, object]
) -> object:
    result = function(*args, **keywords)
    if inspect.isawaitable(result):
        import asyncio

        return asyncio.run(_await(cast("Awaitable[object]", result)))
    return result


async def _await(result: Awaitable[object]) -> object:
    return await result


def _need(code: Code, need: Json, row: Json | None) -> object:
    if row is None:
        return None
    model = code.model(str(need["model"]))
    is_event = need.get("kind") == NodeKind.EVENT
    try:
        return load(model, cast("Json", event_fields(model, row)) if is_event else row)
    except ValidationError as error:
        raise AttemptError(
            TASK_RAISED,
            f"the stored output of {need['node_id']} is no valid {model.__name__} any more",
            {"param": need["param"], "problems": str(error)[:2000]},
        ) from error


def _not_importable(error: BundleError) -> AttemptError:
    missing = error.code == BUNDLE_ENVIRONMENT_MISSING
    code = ENVIRONMENT_MISSING if missing else TASK_NOT_IMPORTABLE
    return AttemptError(code, error.message, {**error.details, "cause": error.code})
