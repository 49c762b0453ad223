"""The demo's figures, as the database has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from smithers.sql import reads
from smithers.sql.calls import Connection
from smithers.sql.rows import Json


@dataclass(frozen=True, slots=True)
class Figures:
    """What one demo came to. Times are seconds from its first moment, the size is in bytes.

    `killed` counts the strikes of which every process that was hit ended without a goodbye,
    `repeated` the attempts of a task beyond the one that had finished it.
    """

    run_id: str
    status: str
    killed: int
    steps: int
    repeated: int
    interrupted: int
    seconds_to_first_body: float
    seconds: float
    disk_bytes: int
    invariants: int
    violations: int
    report: str

    @property
    def line(self) -> str:
        """The last line of the demo."""
        times = "time" if self.killed == 1 else "times"
        return f"killed {self.killed} {times} · {self.steps} steps · {self.repeated} repeated"

    @property
    def held(self) -> bool:
        """Whether the promises were kept."""
        return self.status == "finished" and not self.repeated and not self.violations

    def to_json(self) -> Json:
        """Give the fields."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Counted:
    """What the database says of a run, see `Figures`."""

    steps: int
    repeated: int
    interrupted: int
    killed: int
    first_start: datetime | None


def count(connection: Connection, run_id: str, strikes: Sequence[Sequence[int]]) -> Counted:
    """Count a run; `strikes` are the ids of the processes that each strike hit."""
    owners = [owner for strike in strikes for owner in strike]
    found = reads.read_figures(connection, run_id, owners=owners)
    lost = set(found["lost"])
    first = found["first_start"]
    return Counted(
        steps=found["steps"],
        repeated=found["repeated"],
        interrupted=found["interrupted"],
        killed=sum(bool(strike) and lost.issuperset(strike) for strike in strikes),
        first_start=None if first is None else datetime.fromisoformat(first),
    )


def disk_usage(folder: Path) -> int:
    """The bytes that a folder takes on disk, what vanishes meanwhile left out."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except OSError:
            continue
    return total
