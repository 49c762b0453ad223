"""One mistake that a user of the client makes easily, on the line that is marked."""

from __future__ import annotations

from pydantic import BaseModel

from smithers.client import Run


class Plan(BaseModel):
    files: list[str]


def files(run: Run) -> list[str]:
    typed = run.output("plan", model=Plan).files
    return typed + run.output("plan").files  # mistake
