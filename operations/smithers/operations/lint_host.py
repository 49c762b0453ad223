"""The child of `smithers lint`: plays a workflow on made-up outputs, twice, and looks at its tasks.

python -P -m smithers.operations.lint_host FOLDER MEMORY_BYTES
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from smithers.bundle.load import import_entry, load_workflow
from smithers.operations.lint_code import look_at_function, look_at_tasks
from smithers.operations.lint_play import Watch, play
from smithers.scheduler.render_host import host
from smithers.scheduler.render_work import Work
from smithers.sql.rows import Json


class LintWork(Work):
    """Answers `inspect` beside what a renderer answers."""

    def _do(self, request: Json) -> object:
        if request["do"] != "inspect":
            return super()._do(request)
        import_entry(self._folder)
        workflow = load_workflow(self._folder, request.get("workflow"))
        document = request["input"]
        stored = None if document is None else workflow.admit(document["value"])
        findings = look_at_function(workflow.function, self._folder)
        if stored is None:
            return {"name": workflow.name, "plays": [], "findings": findings, "notes": []}
        watch = Watch()
        first, second = (play(workflow, stored, watch) for _ in range(2))
        findings += look_at_tasks(first.nodes, self._folder) + watch.findings()
        return {
            "name": workflow.name,
            "plays": [first.nodes, second.nodes],
            "findings": findings,
            "notes": first.notes,
        }


def main() -> None:
    """Serve requests."""

    def work(folder: Path) -> Callable[[Json], Json]:
        return LintWork(folder).answer

    host(work)


if __name__ == "__main__":
    main()
