"""The main of a nursery: import modules, fork children that run one of them.

    python -P -m smithers.process.nursery_host FD MODULE…

One thread, one loop: requests come over sockets with the descriptors that a child gets, answers
are lines. A child leaves the loop and runs its module as if it had been started with it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn, TextIO

from smithers.process.environment import PARENT_VARIABLE
from smithers.process.exec_block import show_exec
from smithers.process.linux import become_subreaper, die_with_parent
from smithers.process.nursery import PYTHON

_MOST_FDS = 16
_IGNORED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Task:
    """What a child is to be."""

    module: str
    words: Sequence[str]
    environ: Mapping[str, str]
    names: Sequence[str]
    fds: Sequence[int]
    cwd: str | None
    first: str | None
    death: int


class Host:
    """Serves requests until the sockets of all who may ask are closed."""

    def __init__(self, sock: socket.socket) -> None:
        self._selector = selectors.DefaultSelector()
        self._owners: dict[int, tuple[socket.socket, int]] = {}
        self._bell, bell = socket.socketpair()
        self._bell.settimeout(0)
        bell.settimeout(0)
        self._ringer = bell
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Who stops a whole control group must not end this before those whom it serves.
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._selector.register(sock, selectors.EVENT_READ)

    def serve(self) -> Task | None:
        """Fork as asked. Returns in a child with its task, in the nursery when nobody is left."""
        while len(self._selector.get_map()) > 1:
            for key, _ in self._selector.select():
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if sock is self._bell:
                    with contextlib.suppress(BlockingIOError):
                        sock.recv(4096)
                    self._reap()
                elif (task := self._answer(sock)) is not None:
                    return task
        return None

    def _answer(self, sock: socket.socket) -> Task | None:
        try:
            request, fds = _receive(sock)
        except (OSError, EOFError, ValueError):
            self._forget(sock)
            return None
        if request["do"] == "adopt":
            self._selector.register(socket.socket(fileno=fds[0]), selectors.EVENT_READ)
            _send(sock, {"pid": -1})
            return None
        try:
            pid = os.fork()
        except OSError as error:
            _send(sock, {"error": f"it can't fork: {error.strerror}"})
            pid = -1
        if pid == 0:
            self._leave(fds)
            return _task(request, fds)
        for fd in fds:
            os.close(fd)
        if pid > 0:
            self._owners[pid] = (sock, int(str(request["death"])))
            pidfd = os.pidfd_open(pid)
            _send(sock, {"pid": pid}, [pidfd])
            os.close(pidfd)
        return None

    def _leave(self, kept: Sequence[int]) -> None:
        """In a child: nothing of the nursery's stays open or set."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.detach()
        self._ringer.detach()
        self._selector.close()
        low = 3
        for fd in [*sorted(kept), os.sysconf("SC_OPEN_MAX")]:
            os.closerange(low, fd)
            low = fd + 1

    def _forget(self, sock: socket.socket) -> None:
        """Nobody can ask over it any more: its children have lost whom they work for.

        What they have started dies with them, as far as it stayed in their group. One that is to
        be asked and not killed is asked by the kernel when this nursery ends, and only then.
        """
        self._selector.unregister(sock)
        for pid, (owner, death) in self._owners.items():
            if owner is sock and death == signal.SIGKILL:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                os.kill(pid, signal.SIGKILL)
        sock.close()

    def _reap(self) -> None:
        """Tell of children that have ended; orphans that were left to us are reaped too."""
        while True:
            try:
                pid, raw = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            owner, _ = self._owners.pop(pid, (None, 0))
            if owner is not None and owner.fileno() >= 0:
                with contextlib.suppress(OSError):
                    _send(owner, {"ended": pid, "status": os.waitstatus_to_exitcode(raw)})


def _receive(sock: socket.socket) -> tuple[dict[str, object], list[int]]:
    head, fds, _, _ = socket.recv_fds(sock, 4, _MOST_FDS)
    if len(head) < 4:
        raise EOFError
    left = int.from_bytes(head, "big")
    text = bytearray()
    while len(text) < left:
        part = sock.recv(left - len(text))
        if not part:
            raise EOFError
        text += part
    return dict(json.loads(text)), list(fds)


def _send(sock: socket.socket, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
    socket.send_fds(sock, [json.dumps(message).encode() + b"\n"], fds)


def _task(request: dict[str, object], fds: Sequence[int]) -> Task:
    return Task(fds=fds, **{name: request[name] for name in _FIELDS})  # type: ignore[arg-type]


_FIELDS = ("module", "words", "environ", "names", "cwd", "first", "death")


def become(task: Task, nursery: int) -> None:
    """Make this fork look and behave as if exec had started it for its task."""
    die_with_parent(nursery, task.death)
    os.setsid()
    output, *passed = task.fds
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    sys.stdout = _reopened(sys.stdout, 1)
    sys.stderr = _reopened(sys.stderr, 2)
    if task.cwd is not None:
        os.chdir(task.cwd)
    told = {name: str(fd) for name, fd in zip(task.names, passed, strict=True)}
    environ = {**task.environ, **told, PARENT_VARIABLE: str(nursery)}
    os.environ.clear()
    os.environ.update(environ)
    show_exec([*PYTHON, task.module, *task.words], environ, task.first)
    sys.argv = [task.module, *task.words]


def _reopened(stream: TextIO | None, fd: int) -> TextIO:
    """A stream knows what kind of file it was opened on, which has changed."""
    encoding = "utf-8" if stream is None else stream.encoding
    errors = "backslashreplace" if stream is None or fd == 2 else stream.errors
    buffering = 1 if fd == 2 else -1
    return open(fd, "w", buffering, encoding, errors, closefd=False)


def nurse(sock: socket.socket, parent: int | None, modules: Sequence[str]) -> NoReturn:
    """Serve requests until nobody is left who could make one; in each child, run its task.

    With `parent` this process dies when that one does.
    """
    if parent is not None:
        die_with_parent(parent)
    become_subreaper()
    host = Host(sock)
    for name in modules:
        import_module(name)
    gc.collect()
    gc.freeze()
    nursery = os.getpid()
    task = host.serve()
    if task is not None:
        become(task, nursery)
    os._exit(0 if task is None else _run(task))


def _run(task: Task) -> int:
    """Give the exit code; nothing that ends it may reach the frames below, which are not its."""
    try:
        import_module(task.module).main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  # a process says why it ends
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return code


def main() -> None:
    """Become a nursery in a process of its own."""
    number, *modules = sys.argv[1:]
    nurse(socket.socket(fileno=int(number)), None, modules)


if __name__ == "__main__":
    main()
