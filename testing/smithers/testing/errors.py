"""What can go wrong in a test of a workflow, and how a test makes an attempt fail.

HarnessError      the test asks for what can't be; a SmithersError
  SCRIPT_MISSING · SCRIPT_EXHAUSTED · SCRIPT_INVALID · RUN_UNENDING · OUTPUT_MISSING ·
  NODE_UNKNOWN · NOW_INVALID · VALUE_NOT_STORABLE, and those that commands give a person:
  APPROVAL_UNKNOWN · APPROVAL_AMBIGUOUS · APPROVAL_ALREADY_DECIDED ·
  HUMAN_REQUEST_UNKNOWN · HUMAN_REQUEST_AMBIGUOUS · ANSWER_INVALID · RUN_ALREADY_ENDED
AttemptError      an attempt ends with this code; scripts may raise it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from smithers.workflow.errors import SmithersError

SCRIPT_MISSING: Final = "SCRIPT_MISSING"
SCRIPT_EXHAUSTED: Final = "SCRIPT_EXHAUSTED"
SCRIPT_INVALID: Final = "SCRIPT_INVALID"
RUN_UNENDING: Final = "RUN_UNENDING"
NODE_UNKNOWN: Final = "NODE_UNKNOWN"
NOW_INVALID: Final = "NOW_INVALID"
VALUE_NOT_STORABLE: Final = "VALUE_NOT_STORABLE"
APPROVAL_UNKNOWN: Final = "APPROVAL_UNKNOWN"
APPROVAL_AMBIGUOUS: Final = "APPROVAL_AMBIGUOUS"
APPROVAL_ALREADY_DECIDED: Final = "APPROVAL_ALREADY_DECIDED"
HUMAN_REQUEST_UNKNOWN: Final = "HUMAN_REQUEST_UNKNOWN"
HUMAN_REQUEST_AMBIGUOUS: Final = "HUMAN_REQUEST_AMBIGUOUS"
RUN_ALREADY_ENDED: Final = "RUN_ALREADY_ENDED"

AGENT_FAILED: Final = "AGENT_FAILED"


class HarnessError(SmithersError):
    """A test asks for what can't be: a script is missing, nothing waits for the decision, …"""


def error_of(stored: Mapping[str, object] | None) -> SmithersError | None:
    """Give the error that a row holds; None if it holds none."""
    if not stored:
        return None
    details, hint = stored.get("details"), stored.get("hint")
    return SmithersError(
        str(stored.get("code")),
        str(stored.get("message")),
        details=details if isinstance(details, dict) else None,
        hint=None if hint is None else str(hint),
    )
