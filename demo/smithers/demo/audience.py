"""Who is told the story of the demo, and asked for a decision."""

from __future__ import annotations

from typing import Protocol


class Audience(Protocol):
    """A person at a terminal, or a log."""

    interactive: bool
    """Whether a person is there who can decide."""

    def tell(self, line: str, *, style: str = "") -> None:
        """A line of the demo itself."""

    def overhear(self, line: str) -> None:
        """A line that `smithers up` printed."""
