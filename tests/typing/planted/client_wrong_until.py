"""One mistake that a user of the client makes easily, on the line that is marked."""

from __future__ import annotations

from smithers.client import Run


def wait(run: Run) -> str:
    run.wait(timeout=1, until="parked")
    return run.wait(timeout=1, until="paused").status  # mistake
