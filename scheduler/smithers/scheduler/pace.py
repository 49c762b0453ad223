"""When the scheduler asks the database next: soon after work, seldom when nothing happens."""

from __future__ import annotations

from time import monotonic
from typing import Final

from smithers.process.pace import Pace as Polls

_LOOK_WORKING: Final = 0.2  # seconds between looks at due rows while there is work
_LOOK_IDLE: Final = 10.0
_LOOK_LATE: Final = 0.5  # a row is due that another process is firing
_TAKES_APART: Final = 0.005  # many notifications are answered by one take


class Pace:
    """The times of the next take, of the next look at due rows, and of the earliest of these."""

    def __init__(self, *, take_after: float = 0.0) -> None:
        self._polls = Polls()
        self._take_at = monotonic() + take_after
        self._took_at = 0.0
        self._look_at = 0.0
        self._fire_at: float | None = None

    def wake(self) -> None:
        """Somebody said that there is work."""
        self._take_at = min(self._take_at, self._took_at + _TAKES_APART)
        self.worked()

    def worked(self) -> None:
        """A frame was committed, or will be: rows may be due earlier than was seen."""
        self._look_at = min(self._look_at, monotonic() + _LOOK_WORKING)

    def take_is_due(self) -> bool:
        """Whether to ask for dirty runs now."""
        return monotonic() >= self._take_at

    def took(self, runs: int, *, listening: bool) -> None:
        """The take gave so many runs that weren't at work already."""
        if runs:
            self._polls.worked()
            self.worked()
        self._took_at = monotonic()
        self._take_at = self._took_at + self._polls.idle(listening=listening)

    def look_is_due(self) -> bool:
        """Whether to ask when the earliest row is due."""
        return monotonic() >= self._look_at

    def looked(self, seconds: float | None) -> None:
        """The earliest row is due in so many seconds, or none is."""
        self._fire_at = None if seconds is None else monotonic() + seconds
        self._look_at = monotonic() + _LOOK_IDLE

    def fire_is_due(self) -> bool:
        """Whether a row should be due by now."""
        return self._fire_at is not None and monotonic() >= self._fire_at

    def fired(self, rows: int) -> None:
        """So many rows were fired; the runs that they woke are dirty now."""
        self._fire_at = None
        if rows:
            self._take_at = self._look_at = 0.0
        else:
            self._look_at = monotonic() + _LOOK_LATE

    def sleep(self) -> float:
        """Return the seconds until the next of these."""
        times = [self._take_at, self._look_at]
        if self._fire_at is not None:
            times.append(self._fire_at)
        return max(0.0, min(times) - monotonic())
