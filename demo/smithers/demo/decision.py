"""The approval is the person's: it waits with the exact command, and where there is no terminal
decides by itself in the end.
"""

from __future__ import annotations

import select
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from smithers.demo.audience import Audience
from smithers.operations import deciding
from smithers.operations.looking import status
from smithers.operations.session import session
from smithers.process.settings import Settings
from smithers.sql.errors import Refused

UNATTENDED: Final = timedelta(seconds=30)
"""How long a question stands open where nobody can be asked."""
_LOOK: Final = 0.25


@dataclass(frozen=True, slots=True)
class Decider:
    """Sees to it that the run's approval is decided."""

    settings: Settings
    audience: Audience
    run_id: str

    def decide(self) -> None:
        """Wait for a decision from anywhere; make it on Enter, or when nobody is there."""
        opened_at = self._opened_at()
        if opened_at is None:
            return
        say = self.audience.tell
        say(
            f"The run waits for you, at no cost: smithers approve {self.run_id}",
            style="bold yellow",
        )
        if self.audience.interactive:
            say("(in another terminal; or here: Enter approves, n and Enter denies)")
        else:
            say(
                f"(no terminal: it is approved {UNATTENDED.seconds} s after the question was asked)"
            )
        while self._opened_at() is not None:
            answer = self._answer(opened_at)
            if answer is not None:
                self._decide(approved=answer)
                return

    def _answer(self, opened_at: datetime) -> bool | None:
        if not self.audience.interactive:
            time.sleep(_LOOK)
            return True if datetime.now(UTC) - opened_at > UNATTENDED else None
        if not select.select([sys.stdin], [], [], _LOOK)[0]:
            return None
        line = sys.stdin.readline()
        return line.strip().lower() not in {"n", "no"} if line else None

    def _opened_at(self) -> datetime | None:
        """Since when the question stands open; None when it has been decided."""
        with session(self.settings, purpose="demo") as opened:
            waits = status(opened.connection, self.run_id).blocked
        since = next((wait.since for wait in waits if wait.reason == "approval"), None)
        return None if since is None else datetime.fromisoformat(since)

    def _decide(self, *, approved: bool) -> None:
        act = deciding.approve if approved else deciding.deny
        try:
            with session(self.settings, purpose="demo") as opened:
                act(opened.connection, self.run_id, by="smithers demo")
        except Refused:
            return  # somebody was quicker
