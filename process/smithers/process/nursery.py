"""A process that has imported what children need, and forks them on request.

Starting Python and importing pydantic and our core takes a fifth of a second, a fork takes
milliseconds. The nursery never runs what it forks: user code is imported by the children alone.

    nursery = Nursery.launch(["smithers.worker.host"], environ)
    born = nursery.bear("smithers.worker.host", [folder], environ, output=fd, passed=[fd])

When the nursery dies its children die; when the last holder of the socket that asked for a
child is gone, that child is killed too, and a nursery that nobody can ask any more ends. So a
worker that was lent one drains in peace though the lender is gone.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from smithers.process.exec_block import ROOM_BYTES, ROOM_VARIABLE
from smithers.process.reaper import REAPER

SOCKET_VARIABLE: Final = "SMITHERS_NURSERY_FD"
PYTHON: Final = (sys.executable, "-P", "-X", "faulthandler", "-m")
"""How a module is run as a process of its own; -P: the working folder is no place to import from.
"""
_STATUS_SECONDS: Final = 5.0
_UNKNOWN: Final = -signal.SIGKILL


class NurseryGoneError(Exception):
    """The nursery has ended, or can't fork."""


@dataclass(slots=True)
class Born:
    """A child of a nursery. `pidfd` belongs to whoever has this."""

    pid: int
    pidfd: int
    nursery: Nursery

    def poll(self) -> int | None:
        """The exit code (minus the number of the signal that ended it), None while it lives."""
        if self.pidfd >= 0 and not select.select([self.pidfd], [], [], 0)[0]:
            return None
        return self.nursery.status(self.pid)

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens when it has ended."""
        try:
            signal.pidfd_send_signal(self.pidfd, number)
        except OSError:
            return

    def close(self) -> None:
        """Give the descriptor back; twice is fine."""
        fd, self.pidfd = self.pidfd, -1
        if fd >= 0:
            os.close(fd)


@dataclass
class Nursery:
    """The asking side; any thread may use it."""

    sock: socket.socket
    pid: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: dict[int, int] = field(default_factory=dict[int, int])
    _buffer: bytearray = field(default_factory=bytearray)

    @classmethod
    def launch(cls, modules: Iterable[str], environ: Mapping[str, str]) -> Nursery:
        """Start a nursery that imports `modules`; doesn't wait for it.

        Children get the environment that they are asked for with, not `environ`. Raises OSError.
        """
        ours, theirs = socket.socketpair()
        room = {ROOM_VARIABLE: "." * ROOM_BYTES}
        words = [*PYTHON, "smithers.process.nursery_host", str(theirs.fileno())]
        with theirs, REAPER.starting() as expect:
            process = subprocess.Popen(
                [*words, *modules],
                env={**environ, **room},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
            expect(process.pid)
        process.returncode = 0  # the reaper waits for it
        return cls(ours, process.pid)

    @classmethod
    def fork(cls, modules: Sequence[str]) -> Nursery:
        """As `launch`, but as a fork of this process, with all that it has imported; it dies when
        this thread does, whoever was lent it.

        Only for a process that has no second thread and no connection yet. Raises OSError.
        """
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        with theirs:
            pid = os.fork()
            if pid == 0:
                _leave_for(theirs.fileno(), parent, modules)
        with REAPER.starting() as expect:
            expect(pid)
        return cls(ours, pid)

    @classmethod
    def inherited(cls) -> Nursery | None:
        """The nursery that the starter of this process has lent it, if any."""
        number = os.environ.pop(SOCKET_VARIABLE, None)
        if number is None:
            return None
        sock = socket.socket(fileno=int(number))
        os.set_inheritable(sock.fileno(), False)  # noqa: FBT003  # takes no keyword
        return cls(sock)

    def share(self) -> Nursery:
        """The same nursery, for a part of this process that closes it. Raises NurseryGoneError."""
        return Nursery(self.lend())

    def lend(self) -> socket.socket:
        """A socket of its own to the same nursery, for a child process. Raises NurseryGoneError."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._ask({"do": "adopt"}, [theirs.fileno()])
        return ours

    def bear(
        self,
        module: str,
        words: Sequence[str],
        environ: Mapping[str, str],
        *,
        output: int,
        passed: Sequence[tuple[str, int]] = (),
        cwd: str | None = None,
        first: str | None = None,
        death: int = signal.SIGKILL,
    ) -> Born:
        """Fork a child that calls `module.main()` with `words` as its arguments.

        `output` becomes its standard output and error; each descriptor of `passed` is told in
        the variable named with it. `first` is the variable that must show in /proc, `death` the
        signal that it gets when the nursery dies. Waits until the nursery has imported its
        modules. Raises NurseryGoneError.
        """
        request = {
            "do": "bear",
            "module": module,
            "words": list(words),
            "environ": dict(environ),
            "names": [name for name, _ in passed],
            "cwd": cwd,
            "first": first,
            "death": int(death),
        }
        pid, fd = self._ask(request, [output, *(number for _, number in passed)])
        return Born(pid, fd, self)

    def status(self, pid: int) -> int:
        """The exit code of a child that has ended; -9 when the nursery ended before it told."""
        with self._lock:
            try:
                while pid not in self._ended:
                    if not self._has_more():
                        return _UNKNOWN
                    self._note(self._receive()[0])
            except NurseryGoneError:
                return self._ended.get(pid, _UNKNOWN)
            return self._ended[pid]

    def close(self) -> None:
        """Let go: children that were asked for over this socket are killed; twice is fine."""
        self.sock.close()
        if self.pid is not None:
            pid, self.pid = self.pid, None
            os.kill(pid, signal.SIGKILL)
            REAPER.status(pid)

    def _ask(self, request: Mapping[str, object], fds: Sequence[int]) -> tuple[int, int]:
        """Send a request; give the pid and pidfd of the answer, -1 where there is none."""
        text = json.dumps(request).encode()
        head = len(text).to_bytes(4, "big")
        with self._lock:
            try:
                socket.send_fds(self.sock, [head], fds)
                self.sock.sendall(text)
            except OSError as error:
                raise NurseryGoneError(str(error)) from error
            while True:
                answer, received = self._receive()
                if "ended" in answer:
                    self._note(answer)
                    continue
                if "error" in answer:
                    raise NurseryGoneError(str(answer["error"]))
                return int(str(answer["pid"])), received

    def _receive(self) -> tuple[dict[str, object], int]:
        """The next message, a line; and the descriptor that came with it, else -1."""
        received = -1
        while b"\n" not in self._buffer:
            try:
                data, fds, _, _ = socket.recv_fds(self.sock, 1 << 16, 1)
            except OSError as error:
                raise NurseryGoneError(str(error)) from error
            if not data:
                raise NurseryGoneError("the nursery has ended")
            received = fds[0] if fds else received
            self._buffer += data
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        return dict(json.loads(line)), received

    def _has_more(self) -> bool:
        """Whether a message is there, or comes soon."""
        return b"\n" in self._buffer or bool(select.select([self.sock], [], [], _STATUS_SECONDS)[0])

    def _note(self, message: Mapping[str, object]) -> None:
        self._ended[int(str(message["ended"]))] = int(str(message["status"]))


def _leave_for(fd: int, parent: int, modules: Sequence[str]) -> NoReturn:
    """In a fork: nothing but the socket stays open, and nothing of the parent's is run again."""
    try:
        from smithers.process.nursery_host import nurse

        os.setsid()
        os.closerange(3, fd)
        os.closerange(fd + 1, os.sysconf("SC_OPEN_MAX"))
        nurse(socket.socket(fileno=fd), parent, modules)
    finally:
        os._exit(1)
