"""What a renderer does with a request; runs in the child only."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from smithers.bundle.failure import describe
from smithers.bundle.load import import_entry, load_workflow
from smithers.scheduler.render_errors import RENDER_OUT_OF_MEMORY
from smithers.sql.rows import Json
from smithers.workflow.definition import Workflow
from smithers.workflow.descriptor import Memo
from smithers.workflow.errors import RENDER_FAILED, SmithersError
from smithers.workflow.frame import FrameStructure
from smithers.workflow.settle import settle
from smithers.workflow.snapshot import Snapshot, empty

_REMEMBERED_RUNS: Final = 256


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What the last frame of a run left, if it was stored under this number."""

    frame_no: int
    structure: FrameStructure
    memo: Memo


class Work:
    """Answers requests about the workflows of the bundle unpacked at `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._workflows: dict[str | None, Workflow] = {}
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()

    def answer(self, request: Json) -> Json:
        """Return `{"ok": result}` or `{"error": …}`; never raises, whatever user code does.

        `"broken": True` beside an error says that this process shouldn't be asked again.
        """
        try:
            return {"ok": self._do(request)}
        except SmithersError as error:
            if error.code == RENDER_FAILED and error.__cause__ is not None:
                return self._failure(error.__cause__, hint=error.hint)
            # Modules that were imported by half stay so.
            return {**self._refusal(error), "broken": request.get("do") == "load"}
        except BaseException as error:  # noqa: BLE001  SystemExit and worse: user code ran
            return self._failure(error, hint=None)

    def _do(self, request: Json) -> object:
        what, name = request["do"], request.get("workflow")
        if what == "load":
            import_entry(self._folder)
            return None
        workflow = self._workflows.get(name)
        if workflow is None:
            workflow = self._workflows[name] = load_workflow(self._folder, name)
        if what == "admit":
            return {"workflow": workflow.name, "input": workflow.admit(request["input"])}
        if what == "readmit":
            workflow.stored_input(request["input"])
            return None
        if what == "graph":
            stored = workflow.admit(request["input"])
            return settle(workflow, empty(workflow.name, stored, datetime.now(UTC))).to_json()
        assert what == "render", what
        return self._render(
            workflow, Snapshot.from_json(request["snapshot"]), recall=request["recall"]
        )

    def _render(self, workflow: Workflow, snapshot: Snapshot, *, recall: bool) -> Json | None:
        """Return the next frame; None when the last one was to be recalled and is forgotten."""
        run = snapshot.run
        known = self._remembered.pop(run.run_id, None)
        if known is not None and known.frame_no != run.frame_no:
            known = None
        if known is None and recall:
            return None
        memo = known.memo if known else Memo()
        frame = settle(
            workflow,
            snapshot,
            previous=known.structure if known and recall else None,
            memo=memo,
            trigger="facts" if run.frame_no else "created",
        )
        if frame.structure is not None:
            self._remembered[run.run_id] = _Remembered(run.frame_no + 1, frame.structure, memo)
            while len(self._remembered) > _REMEMBERED_RUNS:
                self._remembered.popitem(last=False)
        return frame.to_json()

    def _failure(self, error: BaseException, *, hint: str | None) -> Json:
        """Describe what user code raised, its place in front."""
        exhausted = isinstance(error, MemoryError)
        failure = describe(error, self._folder)
        document = {
            "code": RENDER_OUT_OF_MEMORY if exhausted else RENDER_FAILED,
            "message": failure.message,
            "details": failure.details(),
            "hint": hint,
        }
        return {"error": document, "broken": exhausted}

    def _refusal(self, error: SmithersError) -> Json:
        """Describe a typed error with the place in user code that led to it, as root paths."""
        document = error.to_json()
        details = {**describe(error, self._folder).details(), **error.details}
        return {"error": _relative({**document, "details": details}, f"{self._folder}/")}


def _relative(value: Any, prefix: str) -> Any:
    """Cut the folder of the bundle off every path in a document."""
    if isinstance(value, str):
        return value.replace(prefix, "")
    if isinstance(value, dict):
        return {key: _relative(item, prefix) for key, item in cast("Json", value).items()}
    if isinstance(value, list | tuple):
        return [_relative(item, prefix) for item in cast("list[Any]", value)]
    return value
