"""What can go wrong with an agent.

`AGENT_UNSUPPORTED` no agent of the task is of a kind that this release runs ·
`AGENT_MISSING` its program isn't there · `AGENT_FAILED` it ended with an exit code or signal ·
`AGENT_ANSWER_MISSING` it printed no JSON object
"""

from __future__ import annotations

from typing import Any, Final

AGENT_UNSUPPORTED: Final = "AGENT_UNSUPPORTED"
AGENT_MISSING: Final = "AGENT_MISSING"
AGENT_FAILED: Final = "AGENT_FAILED"
AGENT_ANSWER_MISSING: Final = "AGENT_ANSWER_MISSING"


class AgentError(Exception):
    """An agent gave no answer: a code, one sentence, facts."""

    def __init__(self, code: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: dict[str, Any] = details or {}
