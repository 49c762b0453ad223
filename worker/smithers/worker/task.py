"""What the body of a task may call. Outside an attempt, in a test say, it does nothing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Final

from smithers.sql import codec
from smithers.workflow.errors import SmithersError

BEAT_BYTES: Final = 8_000
_SHORTEST_PAUSE = 0.1


class Beats:
    """Sends a body's heartbeats to the worker, at most ten a second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._send: Callable[[object], None] | None = None
        self._pid = 0
        self._sent_at = 0.0

    def open(self, send: Callable[[object], None]) -> None:
        """An attempt begins."""
        with self._lock:
            self._send, self._pid, self._sent_at = send, os.getpid(), 0.0

    def close(self) -> None:
        """It has ended; no beat is sent after this returns."""
        with self._lock:
            self._send = None

    def beat(self, data: object) -> None:
        """Send one, unless another was sent just now."""
        size = len(codec.encode(data))
        if size > BEAT_BYTES:
            raise SmithersError(
                "HEARTBEAT_TOO_LARGE",
                f"a heartbeat's data takes {size} bytes of JSON, at most {BEAT_BYTES} are kept",
            )
        with self._lock:
            now = time.monotonic()
            if self._send is None or os.getpid() != self._pid:
                return
            if now - self._sent_at >= _SHORTEST_PAUSE:
                self._sent_at = now
                self._send(data)


BEATS: Final = Beats()
"""An executor runs one attempt at a time, so its beats belong to the process."""


def heartbeat(data: object = None) -> None:
    """Say that the body is alive, with anything JSON-able of at most 8,000 bytes.

    Restarts `heartbeat_timeout`; the last data is kept with the attempt. Any thread may call
    it, as often as it likes. Raises SmithersError (HEARTBEAT_TOO_LARGE) and codec.BadValue.
    """
    BEATS.beat(data)
