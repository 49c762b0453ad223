"""Whether processes serve the database: by their leases, and on this host by their pids too."""

from __future__ import annotations

from smithers.operations.verdict import Serving
from smithers.process.identity import host_name
from smithers.process.procfs import process
from smithers.sql.rows import Json


def serving(processes: list[Json]) -> Serving:
    """Count those of the processes with a current lease that live, as far as this host knows."""
    return Serving.of(each for each in processes if not is_dead(each))


def is_dead(row: Json) -> bool:
    """Whether a process of this host has ended though its lease goes on; False of other hosts."""
    if row["host"] != host_name():
        return False
    found = process(int(row["pid"]))
    return found is None or found.dead
