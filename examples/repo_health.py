"""The health of a git repository: inspect every source file, repair a planted defect, ask, report.

A run of this workflow lists the tracked source files, inspects them in parallel batches with real
tools (line counts, `git log` churn, compile checks, TODO marks), plants a defect in a scratch copy
and repairs it in a loop until its check passes, asks a person, and writes a Markdown report. Kill
it anywhere and resume it: what has finished is not done again.
"""

from __future__ import annotations

from pydantic import BaseModel
from repo_tools import (
    Check,
    Inspection,
    Repair,
    Report,
    Scratch,
    Sources,
    check_copy,
    inspect_batch,
    list_sources,
    plant_defect,
    repair_once,
    write_report,
)

from smithers.workflow import Approval, Ctx, Loop, Node, Parallel, Sequence, Task, workflow


class Health(BaseModel):
    """The input: which repository, where the report goes, how many files a batch takes."""

    repo: str = "."
    report: str = "repo-health.md"
    batch_size: int = 25
    pause_seconds: float = 0.0


@workflow(input=Health, name="repo-health")
def repo_health(ctx: Ctx[Health]) -> Node:
    """Inspect a repository and report on it."""
    repo = ctx.input.repo
    sources = Task(
        "list", Sources, run=list_sources, args={"repo": repo, "size": ctx.input.batch_size}
    )
    found = ctx.output_maybe(sources)
    batches = [
        Task(
            f"inspect:{number}",
            Inspection,
            run=inspect_batch,
            args={"repo": repo, "paths": paths, "pause": ctx.input.pause_seconds},
        )
        for number, paths in enumerate(found.batches if found else [])
    ]
    scratch = Task(
        "plant",
        Scratch,
        run=plant_defect,
        args={"repo": repo, "run_id": ctx.run_id},
        needs={"sources": sources},
    )
    repair = Task("repair", Repair, run=repair_once, needs={"scratch": scratch})
    check = Task("check", Check, run=check_copy, needs={"scratch": scratch})
    last = ctx.latest(check)
    gate = Approval("publish", title=f"Write the report on {repo} to {ctx.input.report}?")
    report = Task(
        "report",
        Report,
        run=write_report,
        args={"repo": repo, "report": ctx.input.report, "repairs": ctx.iteration_count(check)},
        needs={"sources": sources, "check": check, "decision": gate}
        | {f"batch_{number}": batch for number, batch in enumerate(batches)},
    )
    return Sequence(
        sources,
        Parallel(*batches, max_concurrency=4),
        scratch,
        Loop(
            "repair-loop",
            Sequence(repair, check),
            until=last is not None and last.passed,
            max_iterations=3,
        ),
        gate,
        report,
    )
