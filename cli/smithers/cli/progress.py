"""How `up` tells what happens: a tree that is drawn over on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from smithers.cli.narration import Narrator
from smithers.cli.progress_live import LiveTree
from smithers.cli.terminal import is_lively
from smithers.operations.following import Audience


class Teller(Audience, Protocol):
    """An audience that can be told anything; `broken` says that nobody reads it any more."""

    broken: bool

    def say(self, line: str, style: str = "") -> None:
        """Print a line."""


@contextmanager
def telling(
    run_id: str, workflow: str, *, live: bool, on_broken: Callable[[], None]
) -> Generator[Teller]:
    """Tell of a run on standard error: `live` if the terminal can do that, else in lines.

    `on_broken` is called once when nobody reads any more.
    """
    if live and is_lively(sys.stderr):
        with LiveTree(run_id, workflow, sys.stderr, on_broken) as tree:
            yield tree
    else:
        yield Narrator(run_id, sys.stderr, on_broken)
