"""Messages between a process and its child: length-prefixed frames over a socket pair.

A frame is 4 bytes of length, big-endian, and as many bytes of JSON. Text that JSON can't
carry as UTF-8 (lone surrogates) travels by `surrogatepass`. Both ends read with a deadline;
a frame above the bound is refused before memory is taken for it.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from collections.abc import Sequence

MAX_FRAME = 272 * 1024 * 1024
"""Bytes. Above the largest jsonb document that Postgres takes (256 MiB)."""

CHANNEL_VARIABLE = "SMITHERS_CHANNEL_FD"

_LENGTH = struct.Struct(">I")
_CHUNK = 1 << 18


class ChannelClosedError(Exception):
    """The other end is gone."""


class FrameTooLargeError(Exception):
    """A frame is above the bound; the channel can't be used any more."""


class Channel:
    """One end of a socket pair. One thread reads and one thread at a time writes."""

    def __init__(self, sock: socket.socket, *, max_frame: int = MAX_FRAME) -> None:
        sock.settimeout(0)
        self._sock = sock
        self._max_frame = max_frame
        self._buffer = bytearray()

    def fileno(self) -> int:
        """The descriptor, for poll."""
        return self._sock.fileno()

    def send(self, message: object, *, timeout: float | None = None) -> None:
        """Send one message. Raises ChannelClosedError, TimeoutError, FrameTooLargeError."""
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        self.send_bytes(text.encode("utf-8", "surrogatepass"), timeout=timeout)

    def send_bytes(self, *frames: bytes, timeout: float | None = None) -> None:
        """Send frames that are JSON already, one after another, in as few writes as possible."""
        parts: list[bytes] = []
        for frame in frames:
            if len(frame) > self._max_frame:
                raise FrameTooLargeError(f"{len(frame)} bytes, at most {self._max_frame}")
            parts += (_LENGTH.pack(len(frame)), frame)
        deadline = None if timeout is None else time.monotonic() + timeout
        view = memoryview(b"".join(parts))
        while view:
            try:
                view = view[self._sock.send(view) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
            except OSError as error:
                raise ChannelClosedError(str(error)) from error

    def receive(self, *, timeout: float | None = None) -> object:
        """The next message. Raises ChannelClosedError, TimeoutError, FrameTooLargeError."""
        return decode(self.receive_bytes(timeout=timeout))

    def receive_bytes(self, *, timeout: float | None = None) -> bytes:
        """The bytes of the next frame."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (frame := self._take()) is None:
            if not self._fill():
                self._wait(select.POLLIN, deadline)
        return frame

    def poll_bytes(self) -> bytes | None:
        """The bytes of the next frame if it is there as a whole, without waiting."""
        while (frame := self._take()) is None:
            if not self._fill():
                return None
        return frame

    def close(self) -> None:
        """Close this end; twice is fine."""
        self._sock.close()

    def _take(self) -> bytes | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > self._max_frame:
            raise FrameTooLargeError(f"{length} bytes, at most {self._max_frame}")
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        frame = bytes(memoryview(self._buffer)[_LENGTH.size : end])
        del self._buffer[:end]
        return frame

    def _fill(self) -> bool:
        """Read what is there; false when nothing is."""
        try:
            data = self._sock.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError as error:
            raise ChannelClosedError(str(error)) from error
        if not data:
            raise ChannelClosedError("end of file")
        self._buffer += data
        return True

    def _wait(self, events: int, deadline: float | None) -> None:
        poller = select.poll()
        poller.register(self._sock, events)
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        if not poller.poll(left):
            raise TimeoutError("the other end of the channel is silent")


def decode(frame: bytes) -> object:
    """The message in a frame. Raises ValueError."""
    return json.loads(frame.decode("utf-8", "surrogatepass"))


def channel_pair() -> tuple[Channel, socket.socket]:
    """The parent's channel, and the socket to hand to the child."""
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs


def channel_from_fd(fd: int) -> Channel:
    """The child's channel; its own children won't inherit the descriptor."""
    sock = socket.socket(fileno=fd)
    os.set_inheritable(fd, False)  # noqa: FBT003  # takes no keyword
    return Channel(sock)


def readable(fds: Sequence[int], timeout: float | None) -> set[int]:
    """Those of `fds` that can be read (or are at their end) within `timeout` seconds."""
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    wait = None if timeout is None else max(0.0, timeout) * 1000
    return {fd for fd, _ in poller.poll(wait)}
