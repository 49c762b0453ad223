"""What a check found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from smithers.operations.results import Result
from smithers.process.settings_values import without_password
from smithers.workflow.errors import SmithersError

Check = Callable[[], "Finding"]
_LONGEST: Final = 300


class State(StrEnum):
    """How a check ended; only a problem makes the exit code 1."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding(Result):
    """One check's end: a sentence for people, `fix` a command or a sentence, facts for programs."""

    check: str
    state: State
    message: str
    fix: str | None = None
    details: dict[str, object] = field(default_factory=dict[str, object])


def isolated(check: str, work: Check) -> Finding:
    """Do a check; one that raises is a problem of that check."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - one broken check must not hide the others
        return failed(check, error)


def failed(check: str, error: Exception) -> Finding:
    """Give what an exception says, as a problem."""
    if isinstance(error, SmithersError):
        details = {**error.details, "code": error.code}
        message = " ".join(without_password(error.message).split())
        return Finding(check, State.PROBLEM, message, error.hint, details)
    said = " ".join(without_password(str(error)).split())[:_LONGEST]
    return Finding(
        check,
        State.PROBLEM,
        f"it can't be checked: {type(error).__name__}: {said}".rstrip(": "),
        "correct what the message names; if it names nothing of yours, report a bug of Smithers",
        {"error": type(error).__name__},
    )
