"""When the scheduler asks the database next: soon after work, seldom when nothing happens."""

from __future__ import annotations

import time
from typing import Final

FIRST_POLL: Final = 0.02
LONGEST_POLL: Final = 5.0
LONGEST_POLL_LISTENING: Final = 10.0
_DUE_LOOK: Final = 0.2  # at most this often while there is work
_DUE_LOOK_IDLE: Final = 10.0
_LATE_LOOK: Final = 0.5  # a due row that another process is firing


class Pace:
    """The times, by the monotonic clock, of the next take and of the next look at due rows."""

    def __init__(self) -> None:
        self._poll = FIRST_POLL
        self._take_at = 0.0
        self._look_at = 0.0
        self._fire_at: float | None = None

    def wake(self) -> None:
        """Somebody said that there is work."""
        self._take_at = 0.0
        self._look_at = min(self._look_at, time.monotonic() + _DUE_LOOK)

    def take_is_due(self) -> bool:
        """Whether to ask for dirty runs now."""
        return time.monotonic() >= self._take_at

    def took(self, runs: int, *, listening: bool) -> None:
        """The last take gave so many runs that weren't at work already."""
        longest = LONGEST_POLL_LISTENING if listening else LONGEST_POLL
        self._poll = FIRST_POLL if runs else min(self._poll * 2, longest)
        self._take_at = time.monotonic() + self._poll

    def look_is_due(self) -> bool:
        """Whether to ask when the earliest row is due."""
        return time.monotonic() >= self._look_at

    def looked(self, seconds: float | None) -> None:
        """The earliest row is due in so many seconds, or none is."""
        now = time.monotonic()
        self._fire_at = None if seconds is None else now + seconds
        self._look_at = now + _DUE_LOOK_IDLE

    def fire_is_due(self) -> bool:
        """Whether a row should be due by now."""
        return self._fire_at is not None and time.monotonic() >= self._fire_at

    def fired(self, rows: int) -> None:
        """So many rows were fired; the runs that they woke are dirty now."""
        self._fire_at = None
        if rows:
            self._take_at = self._look_at = 0.0
        else:
            self._look_at = time.monotonic() + _LATE_LOOK

    def worked(self) -> None:
        """A frame was committed, which may have made rows that are due earlier."""
        self._look_at = min(self._look_at, time.monotonic() + _DUE_LOOK)

    def sleep(self) -> float:
        """Return the seconds until the next of these."""
        times = [self._take_at, self._look_at]
        if self._fire_at is not None:
            times.append(self._fire_at)
        return max(0.0, min(times) - time.monotonic())
