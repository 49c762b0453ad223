"""The health of a git repository: inspect every source file, repair a planted defect, ask, report.

A run of this workflow lists the tracked source files, inspects them in parallel batches with real
tools (line counts, `git log` churn, compile checks, TODO marks), plants a defect in a scratch copy,
has a scripted agent repair it in a loop until its check passes, asks a person, and writes a
Markdown report. Kill it anywhere and resume it: what has finished is not done again.
"""

from __future__ import annotations

import inspect

import repair_agent
from pydantic import BaseModel
from repo_tools import (
    Check,
    Inspection,
    Report,
    Scratch,
    Sources,
    check_copy,
    inspect_batch,
    list_sources,
    plant_defect,
    write_report,
)

from smithers.agents.command import command
from smithers.workflow import Approval, Ctx, Loop, Node, Parallel, Sequence, Task, workflow

# Given by its source, so that it runs on any worker's host; no key, no account.
AGENT = command(["python3", "-c", inspect.getsource(repair_agent)], name="scripted")


class Repair(BaseModel):
    """What the agent did to the file: the line that it removed, if any."""

    removed: str | None


class Health(BaseModel):
    """The input: which repository, where the report goes, how the work is cut.

    `batches` is the number of parallel inspections, `pause_seconds` what each task takes at least,
    `scratch` the folder for the copy that is broken and repaired (one in /tmp when empty).
    """

    repo: str = "."
    report: str = "repo-health.md"
    batches: int = 6
    pause_seconds: float = 0.0
    scratch: str = ""


@workflow(input=Health, name="repo-health")
def repo_health(ctx: Ctx[Health]) -> Node:
    """Inspect a repository, let an agent repair a planted defect, ask a person, report."""
    repo, pause = ctx.input.repo, ctx.input.pause_seconds
    sources = Task(
        "list", Sources, run=list_sources, args={"repo": repo, "batches": ctx.input.batches}
    )
    found = ctx.output_maybe(sources)
    inspections = [
        Task(
            f"inspect:{number}",
            Inspection,
            run=inspect_batch,
            args={"repo": repo, "paths": paths, "pause": pause},
        )
        for number, paths in enumerate(found.batches if found else [])
    ]
    folder = ctx.input.scratch or f"/tmp/smithers-repo-health-{ctx.run_id}"
    plant = Task(
        "plant",
        Scratch,
        run=plant_defect,
        args={"repo": repo, "folder": folder},
        needs={"sources": sources},
    )
    repair = Task(
        "repair",
        Repair,
        agent=AGENT,
        prompt=f"Repair {folder}/scratch.py: remove the first line that its compiler rejects. "
        f"Think for {pause} seconds first.",
    )
    check = Task("check", Check, run=check_copy, needs={"scratch": plant})
    last = ctx.latest(check)
    gate = Approval("publish", title=f"Write the report on {repo} to {ctx.input.report}?")
    report = Task(
        "report",
        Report,
        run=write_report,
        args={
            "repo": repo,
            "report": ctx.input.report,
            "repairs": ctx.iteration_count(check),
        },
        needs={"sources": sources, "check": check, "decision": gate}
        | {f"batch_{number}": batch for number, batch in enumerate(inspections)},
    )
    repairs = Loop(
        "repair-loop",
        Sequence(repair, check),
        until=last is not None and last.passed,
        max_iterations=3,
    )
    return Sequence(
        sources,
        # The question stands while the work goes on: whoever answers early is not asked again.
        Parallel(
            Sequence(Parallel(*inspections, max_concurrency=3), plant, repairs),
            gate,
        ),
        report,
    )
