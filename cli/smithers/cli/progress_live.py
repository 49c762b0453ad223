"""The tree of a run on a terminal, drawn over as it changes: an audience with a thread that draws.

The thread never touches the database: the follower's looks bring what is new. It draws at most
eight times a second, and only what differs from what is there.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Final, Self, TextIO

from smithers.cli.narration import notice_line
from smithers.cli.progress_lines import Line, Paper, draw
from smithers.cli.progress_model import Progress
from smithers.cli.terminal import console
from smithers.operations.following import Attempt, Notice, Reader
from smithers.operations.results import EventLine
from smithers.process.wake import Stop, Wake

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

_SHORTEST_PAUSE: Final = 1 / 8
_SHARE_OF_TIME: Final = 5  # of the time that drawing a huge tree takes, to leave most of a core
_TICK: Final = 1.0


class LiveTree:
    """An audience that shows a run as a tree; between enter and exit it has the terminal.

    `on_broken` is called once when the terminal is gone. Main thread only.
    """

    def __init__(
        self, run_id: str, workflow: str, stream: TextIO, on_broken: Callable[[], None]
    ) -> None:
        self._progress = Progress(run_id, workflow)
        self._console = console(stream)
        self._on_broken = on_broken
        self._lock = threading.RLock()
        self._wake, self._stop = Wake(), Stop()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._live: Live | None = None
        self._drawn: tuple[Paper, list[Line]] | None = None
        self._on_resize: object = None
        self.broken = False

    def __enter__(self) -> Self:
        self._on_resize = signal.signal(signal.SIGWINCH, self._resized)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.request()
        self._wake.set()
        self._thread.join()
        signal.signal(signal.SIGWINCH, self._on_resize)  # type: ignore[arg-type]
        try:
            self._guarded(self._draw)
        finally:
            live, self._live = self._live, None
            if live is not None:
                self._guarded(live.stop)  # shows the cursor again
            self._wake.close()

    def event(self, event: EventLine) -> None:
        """Note what it is about; it is read at the end of the look."""
        self._progress.event(event)

    def looked(self, claimed: Sequence[Attempt], read: Reader) -> None:
        """Read what has changed, if anything, and have it drawn."""
        self._progress.claimed(claimed)
        wanted = self._progress.wanted()
        if wanted is None:
            return
        document = read(keys=wanted.keys, after=wanted.after)
        with self._lock:
            self._progress.update(document, datetime.now(UTC))
        self._wake.set()

    def notice(self, notice: Notice, detail: str) -> None:
        """Say what happens around the run, above the tree."""
        self.say(notice_line(notice, detail), "dim")

    def say(self, line: str, style: str = "") -> None:
        """Print a line above the tree."""
        self._guarded(lambda: self._print(line, style))

    def _print(self, line: str, style: str) -> None:
        from rich.text import Text

        self._mend()
        self._console.print(Text(line, style=style), soft_wrap=True)

    def _resized(self, _number: int, _frame: FrameType | None) -> None:
        self._wake.set()

    def _run(self) -> None:
        tick = time.monotonic() + _TICK
        while not self._stop:
            self._wake.wait(tick - time.monotonic())
            began = time.monotonic()
            while tick <= began:
                tick += _TICK
            self._guarded(self._draw)
            took = time.monotonic() - began
            self._stop.wait(max(_SHORTEST_PAUSE, took * _SHARE_OF_TIME))

    def _guarded(self, work: Callable[[], None]) -> None:
        """Use the terminal, unless it is gone; when it goes, say so once."""
        with self._lock:
            if self.broken:
                return
            try:
                work()
            except (OSError, ValueError):
                self.broken = True
                self._on_broken()

    def _draw(self) -> None:
        if self._progress.created_at is None:
            return
        paper = self._paper()
        lines = draw(self._progress, paper, datetime.now(UTC))
        if self._drawn is not None and self._drawn[1] == lines and self._drawn[0] == paper:
            return
        self._mend()
        self._started().update(self._renderable(lines), refresh=True)
        self._drawn = (paper, lines)

    def _paper(self) -> Paper:
        size = self._console.size
        return Paper(size.width, size.height - 1, self._console.encoding)

    def _started(self) -> Live:
        if self._live is None:
            from rich.live import Live

            self._live = Live(
                console=self._console,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self._live

    @staticmethod
    def _renderable(lines: list[Line]) -> Group:
        from rich.console import Group
        from rich.text import Text

        return Group(*(Text.assemble(*line, no_wrap=True, overflow="crop") for line in lines))

    def _mend(self) -> None:
        """Erase what a narrower terminal has made of the tree: rich doesn't know of lines that
        the terminal itself has broken, so the rows too many go first.
        """
        from rich.cells import cell_len
        from rich.control import Control
        from rich.segment import ControlType

        width = self._console.size.width
        if self._drawn is None or width >= self._drawn[0].width:
            return
        lengths = [cell_len("".join(part.text for part in line)) for line in self._drawn[1]]
        broken = sum(max(0, -(-length // width) - 1) for length in lengths)
        up = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
        self._console.control(Control(ControlType.CARRIAGE_RETURN, *(up * broken)))
        self._drawn = (Paper(width, 0), [])
