"""What a renderer does with a request; runs in the child only."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from smithers.bundle.failure import describe
from smithers.bundle.load import import_entry, load_workflow
from smithers.scheduler.render_errors import RENDER_OUT_OF_MEMORY
from smithers.workflow.errors import RENDER_FAILED, SmithersError
from smithers.workflow.settle import settle
from smithers.workflow.snapshot import Snapshot, empty

_REMEMBERED_RUNS: Final = 256


class Work:
    """Answers requests about the workflows of the bundle unpacked at `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def answer(self, request: Mapping[str, object]) -> dict[str, object]:
        """Return `{"ok": result}` or `{"error": …}`; never raises, whatever user code does.

        `"broken": True` beside an error says that this process shouldn't be asked again.
        """
        try:
            return {"ok": self._do(request)}
        except MemoryError as error:
            return {**self._failure(RENDER_OUT_OF_MEMORY, error), "broken": True}
        except SmithersError as error:
            # Modules that were imported by half stay so.
            return {**self._refusal(error), "broken": request.get("do") == "load"}
        except BaseException as error:  # noqa: BLE001  SystemExit and worse: user code ran
            return self._failure(RENDER_FAILED, error)

    def _do(self, request: Mapping[str, object]) -> object:
        match request:
            case {"do": "load"}:
                import_entry(self._folder)
                return None
            case {"do": "admit", "workflow": str() | None as name, "input": document}:
                workflow = load_workflow(self._folder, name)
                return {"workflow": workflow.name, "input": workflow.admit(document)}
            case {"do": "render", "workflow": str(name), "snapshot": dict(rows)}:
                return settle(load_workflow(self._folder, name), Snapshot.from_json(rows)).to_json()
            case {"do": "graph", "workflow": str() | None as name, "input": document}:
                workflow = load_workflow(self._folder, name)
                start = empty(workflow.name, workflow.admit(document), datetime.now(UTC))
                return settle(workflow, start).to_json()
            case _:
                raise ValueError(f"the renderer doesn't know the request {request.get('do')!r}")

    def _failure(self, code: str, error: BaseException) -> dict[str, object]:
        failure = describe(error, self._folder)
        document = {"code": code, "message": failure.message, "details": failure.details()}
        return {"error": {**document, "hint": None}}

    def _refusal(self, error: SmithersError) -> dict[str, object]:
        """Describe a typed error with the place in user code that led to it, as root paths."""
        document = error.to_json()
        details = {**describe(error, self._folder).details(), **error.details}
        return {"error": _relative({**document, "details": details}, f"{self._folder}/")}


def _relative(value: object, prefix: str) -> object:
    match value:
        case str():
            return value.replace(prefix, "")
        case dict():
            return {key: _relative(item, prefix) for key, item in value.items()}
        case list() | tuple():
            return [_relative(item, prefix) for item in value]
        case _:
            return value
