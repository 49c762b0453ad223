"""How long a process waits before it looks for work again when nobody has called it."""

from __future__ import annotations

FIRST_SECONDS = 0.02
LONGEST_SECONDS = 5.0
LISTENING_SECONDS = 10.0


class Pace:
    """Short after work, doubling while there is none, longest with a live LISTEN."""

    def __init__(self, *, longest: float = LONGEST_SECONDS) -> None:
        self._longest = longest
        self._next = FIRST_SECONDS
        self._fresh = True

    def worked(self) -> None:
        """There was work: more may follow soon."""
        self._next = FIRST_SECONDS
        self._fresh = True

    def idle(self, *, listening: bool) -> float:
        """There was none: seconds until the next look."""
        fresh, self._fresh = self._fresh, False
        if listening and not fresh:
            self._next = FIRST_SECONDS
            return LISTENING_SECONDS
        seconds = self._next
        self._next = min(self._longest, seconds * 2)
        return seconds
