"""The lock under which a server is made, started and stopped."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded.place import Place

LOCK_SECONDS = 120.0
PAUSE = 0.02


@contextmanager
def locked(place: Place) -> Generator[None]:
    """Hold the lock of this place; a process that dies gives it up.

    Raises `DatabaseUnavailable` when another holds it for too long.
    """
    with place.lock.open("ab") as file:
        if not hold(file, LOCK_SECONDS):
            raise DatabaseUnavailable(
                f"{place.lock} is held by another process for {LOCK_SECONDS:g} s",
                hint="see which smithers command hangs, and end it",
            )
        yield


def hold(file: IO[bytes], seconds: float) -> bool:
    """Lock an open file until it is closed; False when another held it all the time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE)
