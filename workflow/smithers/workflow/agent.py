"""What `agent=` takes: a value that names a coding agent and its options.

The agents themselves live in `smithers.agents`, whose functions return these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from pydantic_core import PydanticSerializationError, to_jsonable_python

from smithers.workflow.errors import INVALID_VALUE, AuthorError


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """A coding agent as data: which kind, under which name, with which options.

    Options are JSON-able and never hold a secret: they are stored with the run.
    Raises AuthorError (INVALID_VALUE).
    """

    kind: str
    name: str = ""
    options: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        if type(self.kind) is not str or not self.kind:
            raise AuthorError(INVALID_VALUE, f"an agent's kind is a name, not {self.kind!r}")
        try:
            options = cast("Mapping[str, object]", to_jsonable_python(dict(self.options)))
        except (PydanticSerializationError, TypeError, ValueError) as error:
            raise AuthorError(
                INVALID_VALUE, f"the options of agent {self.kind!r} aren't JSON: {error}"
            ) from error
        object.__setattr__(self, "name", self.name or self.kind)
        object.__setattr__(self, "options", options)

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    def to_json(self) -> dict[str, object]:
        """Give the agent as a descriptor holds it."""
        return {"kind": self.kind, "name": self.name, "options": self.options}
