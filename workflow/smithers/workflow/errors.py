"""The errors of the pure core; the root of every error that Smithers raises on purpose.

    SmithersError                 code, message, details, hint
    ├── AuthorError               what a workflow's author wrote can't be used
    │     INVALID_ID · DUPLICATE_ID · INVALID_NODE · INVALID_MODEL · INVALID_VALUE ·
    │     TASK_NOT_IMPORTABLE
    ├── ReadError                 a render read what isn't there
    │     OUTPUT_MISSING · OUTPUT_MISMATCH · INVALID_REFERENCE
    ├── RenderError               a render gave no frame
    │     RENDER_FAILED · RENDER_TIMEOUT · RENDER_UNSETTLED · RUN_TOO_LARGE
    ├── InputError                a run's input doesn't fit: INPUT_INVALID
    └── SnapshotError             rows that the core can't read: SNAPSHOT_INVALID

Other packages add branches of their own. Codes that end nodes and runs are stored with
them and never raised: APPROVAL_DENIED, WAIT_EXPIRED, ANSWER_INVALID, LOOP_EXHAUSTED,
DEPENDENCY_MISSING, RUN_STUCK, TASK_FAILED.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INVALID_ID: Final = "INVALID_ID"
DUPLICATE_ID: Final = "DUPLICATE_ID"
INVALID_NODE: Final = "INVALID_NODE"
INVALID_MODEL: Final = "INVALID_MODEL"
INVALID_VALUE: Final = "INVALID_VALUE"
TASK_NOT_IMPORTABLE: Final = "TASK_NOT_IMPORTABLE"

OUTPUT_MISSING: Final = "OUTPUT_MISSING"
OUTPUT_MISMATCH: Final = "OUTPUT_MISMATCH"
INVALID_REFERENCE: Final = "INVALID_REFERENCE"

RENDER_FAILED: Final = "RENDER_FAILED"
RENDER_TIMEOUT: Final = "RENDER_TIMEOUT"
RENDER_UNSETTLED: Final = "RENDER_UNSETTLED"
RUN_TOO_LARGE: Final = "RUN_TOO_LARGE"

INPUT_INVALID: Final = "INPUT_INVALID"
SNAPSHOT_INVALID: Final = "SNAPSHOT_INVALID"

APPROVAL_DENIED: Final = "APPROVAL_DENIED"
WAIT_EXPIRED: Final = "WAIT_EXPIRED"
ANSWER_INVALID: Final = "ANSWER_INVALID"
LOOP_EXHAUSTED: Final = "LOOP_EXHAUSTED"
DEPENDENCY_MISSING: Final = "DEPENDENCY_MISSING"
RUN_STUCK: Final = "RUN_STUCK"
TASK_FAILED: Final = "TASK_FAILED"


class SmithersError(Exception):
    """An error with a stable code, a sentence for people, facts for programs, and a way on.

    `code` is UPPER_SNAKE and an interface; `message` is one sentence without the code;
    `details` is JSON-able; `hint` says what to do next, or is None.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        details: Mapping[str, object] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code: str = code
        self.message: str = message
        self.details: dict[str, object] = dict(details or {})
        self.hint: str | None = hint

    def to_json(self) -> dict[str, object]:
        """Give the error as it is stored and printed."""
        return {
            "code": self.code,
            "message": self.message,
            "details": self.details,
            "hint": self.hint,
        }

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


class AuthorError(SmithersError):
    """What a workflow's author wrote can't be used; the message names the node."""


class ReadError(SmithersError):
    """A render read an output that isn't there, or isn't what was asked for."""


class RenderError(SmithersError):
    """A render gave no frame: it raised, hung, never settled, or mounted too much."""


class InputError(SmithersError):
    """A run's input doesn't fit the workflow's model; `details["fields"]` lists each field."""


class SnapshotError(SmithersError):
    """The rows of a run don't have the shape that this version of the core reads."""


def _rebuild(
    cls: type[SmithersError], args: tuple[object, ...], state: dict[str, object]
) -> SmithersError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error
