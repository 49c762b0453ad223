"""What a child prints: drained at once, its end kept, all of it copied to a log file.

The pump reads for all children of a process in one thread; the thread that ends an attempt
drains once more, so that nothing printed before the result is missing. A pipe that a
grandchild keeps open doesn't matter: nobody waits for its end.
"""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

TAIL_BYTES = 64 * 1024
_CHUNK = 1 << 16
_ROUND = 16
"""Reads in a row before another child gets its turn."""


class Output:
    """The output of one child. All methods may be called by any thread."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._lock = threading.Lock()
        self._tail = bytearray()
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._limit: int | None = None
        self._on_overflow: Callable[[], None] | None = None
        self.size = 0
        self.active_at = time.monotonic()

    def fileno(self) -> int:
        """The descriptor, -1 once it is closed."""
        return self._fd

    def begin(
        self,
        log: Path | None,
        *,
        limit: int | None = None,
        on_overflow: Callable[[], None] | None = None,
    ) -> None:
        """Start an attempt: what is printed from now on is its own.

        `log` is made with the first byte, its folder too. Above `limit` bytes `on_overflow`
        is called once, by the draining thread, and the rest is thrown away.
        """
        with self._lock:
            self._drain()
            self._close_file()
            self._tail.clear()
            self._path, self._limit, self._on_overflow = log, limit, on_overflow
            self.size = 0
            self.active_at = time.monotonic()

    def end(self) -> str:
        """End the attempt; returns the last 64 KiB that it printed."""
        with self._lock:
            self._drain()
            self._close_file()
            self._path = self._limit = self._on_overflow = None
            return self.tail()

    def tail(self) -> str:
        """The last 64 KiB, undecodable bytes replaced."""
        return bytes(self._tail).decode("utf-8", "replace")

    def drain(self) -> bool:
        """Read what is there; false when the pipe has ended."""
        with self._lock:
            return self._drain()

    def close(self) -> None:
        """Read what is there and close; twice is fine."""
        with self._lock:
            self._drain()
            self._close_file()
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def _drain(self) -> bool:
        if self._fd < 0:
            return False
        for _ in range(_ROUND):
            try:
                data = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._take(data)
        return True

    def _take(self, data: bytes) -> None:
        self.active_at = time.monotonic()
        self.size += len(data)
        self._tail += data
        del self._tail[:-TAIL_BYTES]
        if self._limit is None or self.size <= self._limit:
            self._write(data)
        elif self._on_overflow is not None:
            callback, self._on_overflow = self._on_overflow, None
            callback()

    def _write(self, data: bytes) -> None:
        if self._path is None:
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("ab", buffering=0)
            self._file.write(data)
        except OSError:
            # A full disk must not end the attempt; the tail is still kept.
            self._path = None

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Pump:
    """One thread that drains the output of all children."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._bell, self._rope = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        self._thread: threading.Thread | None = None
        self._stopped = False

    def add(self, output: Output) -> None:
        """Drain this output from now on; starts the thread if need be."""
        with self._lock:
            self._selector.register(output.fileno(), selectors.EVENT_READ, output)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="output", daemon=True)
                self._thread.start()

    def remove(self, output: Output) -> None:
        """Close this output; twice is fine."""
        with self._lock:
            fd = output.fileno()
            if fd >= 0 and fd in self._selector.get_map():
                self._selector.unregister(fd)
            output.close()

    def close(self) -> None:
        """End the thread."""
        self._stopped = True
        os.write(self._rope, b"x")
        if self._thread is not None:
            self._thread.join()
        self._selector.close()
        os.close(self._bell)
        os.close(self._rope)

    def _run(self) -> None:
        while not self._stopped:
            for key, _ in self._selector.select():
                output = key.data
                if isinstance(output, Output) and not output.drain():
                    with self._lock:
                        # At its end a pipe stays readable: it would spin.
                        if key.fd in self._selector.get_map() and output.fileno() == key.fd:
                            self._selector.unregister(key.fd)
