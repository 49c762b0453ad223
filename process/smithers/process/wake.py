"""How one thread, or a signal handler, wakes another.

`threading.Event` deadlocks when a signal handler sets it while its thread is inside `wait`;
an eventfd doesn't, and can be polled together with other descriptors.
"""

from __future__ import annotations

import os
import select


class Wake:
    """A wish to look again. Any number of `set` before a `wait` count as one."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def fileno(self) -> int:
        """The descriptor, for poll."""
        return self._fd

    def set(self) -> None:
        """Wake the waiter, or let its next `wait` return at once. Safe in a signal handler."""
        if self._fd < 0:
            return
        try:
            os.eventfd_write(self._fd, 1)
        except OSError:
            return  # it is set already

    def clear(self) -> None:
        """Forget a wish."""
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return

    def wait(self, timeout: float | None) -> bool:
        """Wait at most `timeout` seconds (None: for ever); true when somebody called `set`."""
        woken = _poll(self._fd, timeout)
        if woken:
            self.clear()
        return woken

    def close(self) -> None:
        """Give the descriptor back; later calls of `set` do nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Stop:
    """How much a process has been asked to end: 0 not, 1 drain, 2 hurry. It only rises."""

    RUN, DRAIN, HURRY = 0, 1, 2

    def __init__(self, *wakes: Wake) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._wakes = list(wakes)
        self.level = self.RUN

    def fileno(self) -> int:
        """The descriptor, for poll; readable from the first request on."""
        return self._fd

    def __bool__(self) -> bool:
        return self.level > self.RUN

    @property
    def hurried(self) -> bool:
        """True after the second request."""
        return self.level >= self.HURRY

    def also_wake(self, wake: Wake) -> None:
        """Set `wake` too at each request."""
        self._wakes.append(wake)

    def request(self) -> None:
        """Ask once more. Safe in a signal handler."""
        self.level = min(self.level + 1, self.HURRY)
        os.eventfd_write(self._fd, 1)
        for wake in self._wakes:
            wake.set()

    def wait(self, timeout: float | None) -> bool:
        """Wait for the first request, at most `timeout` seconds; true when it has come."""
        return _poll(self._fd, timeout)


def _poll(fd: int, timeout: float | None) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(None if timeout is None else max(0.0, timeout) * 1000))
