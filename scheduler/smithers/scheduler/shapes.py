"""Which output shapes are known to have their table, so that a frame asks the database once."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from smithers.sql.calls import Connection
from smithers.sql.rows import Json
from smithers.sql.scheduler import register_outputs


class Shapes:
    """The output shapes that this process has registered in one database; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: set[tuple[str, str]] = set()

    def register(self, connection: Connection, shapes: Sequence[Json]) -> None:
        """Make the tables of those of `shapes` that aren't known, in a transaction of their own."""
        with self._lock:
            new = [shape for shape in shapes if (shape["name"], shape["shape"]) not in self._known]
        if new:
            register_outputs(connection, new)
            with self._lock:
                self._known.update((shape["name"], shape["shape"]) for shape in new)
