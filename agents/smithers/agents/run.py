"""Run the agent of a task: the first of its agents that is of a known kind.

Called in an isolated executor. Failing over to the next agent is not done yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smithers.agents.command import run_command
from smithers.agents.errors import AGENT_UNSUPPORTED, AgentError

__all__ = ["AgentError", "run_agents"]


def run_agents(
    agents: Sequence[Mapping[str, Any]], prompt: str, *, schema: Mapping[str, object]
) -> dict[str, Any]:
    """The JSON object that the agent answered. Raises AgentError."""
    kinds = [str(agent.get("kind")) for agent in agents]
    if "command" not in kinds:
        raise AgentError(
            AGENT_UNSUPPORTED,
            f"this release runs no agent of kind {', '.join(kinds) or 'none'}, only 'command'",
            {"kinds": kinds},
        )
    spec = agents[kinds.index("command")]
    return run_command(spec.get("options") or {}, prompt, schema=schema)
