"""Judge what lives and runs in the database: processes, and runs that nothing moves. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

from smithers.operations.doctor.finding import Finding, State
from smithers.operations.results import RunSummary
from smithers.operations.verdict import Verdict


def judge_processes(living: Sequence[dict[str, Any]], version: str) -> Finding:
    """Whether all living processes are of our release; rows are those of `health_processes`."""
    kinds: Counter[str] = Counter()
    for row in living:
        kinds[row["kind"]] += row["processes"]
    others = sorted({str(row["version"]) for row in living if row["version"] != version})
    details: dict[str, object] = {"living": list(living), "version": version}
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    if others:
        words = f"{counts}; some are of {', '.join(others)}, and this is {version}"
        fix = "end those processes, and start them with this release"
        return Finding("processes", State.WARNING, words, fix, details)
    said = counts or "none lives: smithers up brings its own"
    return Finding("processes", State.OK, said, None, details)


def judge_runs(runs: Sequence[RunSummary], *, limit: int) -> Finding:
    """Whether a run is stuck: it should move and nothing will move it. `limit` is how many of
    the newest were looked at.
    """
    stuck = [run for run in runs if run.verdict is Verdict.STUCK]
    newest = f" (of the newest {limit})" if len(runs) >= limit else ""
    details: dict[str, object] = {
        "active": len(runs),
        "stuck": [
            {"run_id": run.run_id, "reasons": [each.reason for each in run.unhealthy]}
            for run in stuck
        ],
    }
    if not stuck:
        words = f"{len(runs)} not ended, none stuck{newest}"
        return Finding("runs", State.OK, words, None, details)
    first = stuck[0].run_id
    words = f"{len(stuck)} of {len(runs)} stuck{newest}"
    return Finding("runs", State.WARNING, words, f"smithers why {shlex.quote(first)}", details)
