"""Which files of the home folder belong to an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote


class Attempt(Protocol):
    """What names an attempt."""

    @property
    def run_id(self) -> str: ...  # noqa: D102
    @property
    def node_id(self) -> str: ...  # noqa: D102
    @property
    def iteration(self) -> int: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """The name of an attempt, by itself."""

    run_id: str
    node_id: str
    iteration: int
    attempt: int


def log_path(home: Path, attempt: Attempt) -> Path:
    """Where what an attempt prints is kept."""
    return home / "logs" / quote(attempt.run_id, safe="") / f"{_stem(attempt)}.log"


def spill_path(home: Path, attempt: Attempt) -> Path:
    """Where an output that is too large to store is left."""
    return home / "outputs" / quote(attempt.run_id, safe="") / f"{_stem(attempt)}.json"


def _stem(attempt: Attempt) -> str:
    # A file name takes 255 bytes, an id up to 1,024 of which each may be quoted as three.
    node = quote(attempt.node_id, safe=" =,@:", errors="surrogatepass")[:180]
    return f"{node}.{attempt.iteration}.{attempt.attempt}"
