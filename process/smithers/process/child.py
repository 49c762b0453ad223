"""Child processes: spawned with a channel, watched by pid, their output drained.

A child leads its own session and process group. The kernel kills it when its parent's
spawning thread ends (`enter_child`, the first call of a child's main, asks for that), so
children are spawned by the main thread: other threads ask the `Spawner`. With a nursery
(see there) a child is a fork of that, and dies with it.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from smithers.process.channel import (
    CHANNEL_VARIABLE,
    Channel,
    channel_from_fd,
    channel_pair,
    readable,
)
from smithers.process.environment import PARENT_VARIABLE, Mark
from smithers.process.kill import Tree, continue_tree, kill_tree, stop_tree
from smithers.process.linux import become_subreaper, die_with_parent
from smithers.process.nursery import PYTHON, Born, Nursery, NurseryGoneError
from smithers.process.output import Output, Pump
from smithers.process.procfs import process
from smithers.process.reaper import REAPER


class SpawnRefusedError(Exception):
    """The process is ending and starts no more children."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """What to start: the command, its whole environment, where, and its mark."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    mark: Mark | None = None
    cwd: Path | None = None

    @property
    def module(self) -> tuple[str, Sequence[str]] | None:
        """The module that it runs, and its arguments, if that is what it does."""
        words = len(PYTHON)
        if tuple(self.argv[:words]) != PYTHON:
            return None
        return self.argv[words], self.argv[words + 1 :]


class Child:
    """A running or ended child. Reading its channel is for one thread; the rest is for any."""

    def __init__(
        self,
        pid: int,
        channel: Channel,
        output: Output,
        mark: Mark | None,
        born: Born | None = None,
    ) -> None:
        self.pid = pid
        self._born = born
        self.channel = channel
        self.output = output
        proc = process(pid)
        self.tree = Tree(pid=pid, started=proc.started if proc else 0, mark=mark)
        self.pidfd = os.pidfd_open(pid) if born is None else os.dup(born.pidfd)
        self._status: int | None = None
        self._lock = threading.Lock()
        self._pump: Pump | None = None

    def poll(self) -> int | None:
        """The exit code (minus the number of the signal that ended it), None while it lives."""
        with self._lock:
            if self._status is None:
                born = self._born
                self._status = REAPER.status(self.pid) if born is None else born.poll()
            return self._status

    def wait(self, timeout: float | None) -> int | None:
        """As `poll`, but waits at most `timeout` seconds for the process, not for its pipes."""
        if self.poll() is None and self.pidfd >= 0:
            readable([self.pidfd], timeout)
        return self.poll()

    def signal(self, number: int) -> None:
        """Send a signal to the child alone; nothing happens when it has ended."""
        try:
            signal.pidfd_send_signal(self.pidfd, number)
        except OSError:
            return

    def stop(self) -> None:
        """Suspend the child and all its descendants."""
        stop_tree(self.tree)

    def resume(self) -> None:
        """Let a suspended tree go on."""
        continue_tree(self.tree)

    def kill(self) -> int:
        """Kill the child and its last descendant; returns how many processes there were."""
        killed = kill_tree(self.tree)
        self.wait(5.0)
        return killed

    def close(self) -> None:
        """Give back descriptors of a child that has ended; twice is fine."""
        self.channel.close()
        if self._pump is not None:
            self._pump.remove(self.output)
        else:
            self.output.close()
        fd, self.pidfd = self.pidfd, -1
        if fd >= 0:
            os.close(fd)
        if self._born is not None:
            self._born.close()
        elif self.poll() is not None:
            REAPER.forget(self.pid)

    def drained_by(self, pump: Pump) -> None:
        """Have a pump read the output from now on."""
        self._pump = pump
        pump.add(self.output)


def spawn(spec: ChildSpec, nursery: Nursery | None = None) -> Child:
    """Start a child; only the main thread may, see the module.

    Raises OSError, NurseryGoneError.
    """
    ours, theirs = channel_pair()
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    module = spec.module
    born: Born | None = None
    try:
        if nursery is None or module is None:
            pid = _execute(spec, channel=theirs.fileno(), output=write_end)
        else:
            born = _fork(spec, nursery, *module, channel=theirs.fileno(), output=write_end)
            pid = born.pid
    except BaseException:
        ours.close()
        os.close(read_end)
        raise
    finally:
        theirs.close()
        os.close(write_end)
    return Child(pid, ours, Output(read_end), spec.mark, born)


def _execute(spec: ChildSpec, *, channel: int, output: int) -> int:
    environ = dict(spec.environ)
    environ[CHANNEL_VARIABLE] = str(channel)
    environ[PARENT_VARIABLE] = str(os.getpid())
    with REAPER.starting() as expect:
        popen = subprocess.Popen(
            list(spec.argv),
            env=environ,
            cwd=spec.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(channel,),
        )
        expect(popen.pid)
    # The reaper waits for it; this keeps subprocess from doing so, and from warning.
    popen.returncode = 0
    return popen.pid


def _fork(
    spec: ChildSpec,
    nursery: Nursery,
    module: str,
    words: Sequence[str],
    *,
    channel: int,
    output: int,
) -> Born:
    return nursery.bear(
        module,
        words,
        spec.environ,
        output=output,
        passed=[(CHANNEL_VARIABLE, channel)],
        cwd=None if spec.cwd is None else str(spec.cwd),
        first=None if spec.mark is None else spec.mark.name,
    )


class Spawner:
    """Starts children for all threads of a process, in the thread that made it.

    That thread calls `serve` whenever `wake` was called. With `launch` children are forked by a
    nursery, `nursery` or one that is launched when it is needed.
    """

    def __init__(
        self,
        wake: Callable[[], None],
        *,
        pump: Pump,
        launch: Callable[[], Nursery] | None = None,
        nursery: Nursery | None = None,
    ) -> None:
        self._wake = wake
        self._pump = pump
        self._launch = launch
        self._nursery = nursery
        self._thread = threading.get_ident()
        self._wishes: queue.SimpleQueue[tuple[ChildSpec, Future[Child]]] = queue.SimpleQueue()
        self._closed = False

    def spawn(self, spec: ChildSpec) -> Child:
        """Start a child, by way of the owning thread. Raises OSError, SpawnRefusedError."""
        if self._closed:
            raise SpawnRefusedError("the process is ending")
        if threading.get_ident() == self._thread:
            return self._start(spec)
        future: Future[Child] = Future()
        self._wishes.put((spec, future))
        self._wake()
        return future.result()

    def serve(self) -> int:
        """Start what other threads have asked for; returns how many."""
        served = 0
        while True:
            try:
                spec, future = self._wishes.get_nowait()
            except queue.Empty:
                return served
            served += 1
            if self._closed:
                future.set_exception(SpawnRefusedError("the process is ending"))
                continue
            try:
                future.set_result(self._start(spec))
            except BaseException as error:  # noqa: BLE001  # the asking thread gets it
                future.set_exception(error)

    def warm(self) -> None:
        """Have the nursery begin to import, so that the first child need not wait for that."""
        if self._launch is not None and self._nursery is None:
            self._nursery = self._launch()

    def close(self) -> None:
        """Refuse what is asked for from now on, and what has been asked for. The children end."""
        self._closed = True
        self.serve()
        if self._nursery is not None:
            self._nursery.close()

    def _start(self, spec: ChildSpec) -> Child:
        if spec.module is not None:
            self.warm()
        try:
            child = spawn(spec, self._nursery)
        except NurseryGoneError:
            child = self._start_in_another(spec)
        child.drained_by(self._pump)
        return child

    def _start_in_another(self, spec: ChildSpec) -> Child:
        """The nursery has died, or its host has no memory left for a fork."""
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None
        self.warm()
        try:
            return spawn(spec, self._nursery)
        except NurseryGoneError as error:
            raise OSError(f"no child can be started: {error}") from error


def enter_child() -> Channel:
    """Become a child of the engine: the first call of a child's main. Returns its channel.

    From here on the process dies with its parent, adopts the orphans among its descendants,
    and hides the channel from the programs that it starts.
    """
    parent = int(os.environ.pop(PARENT_VARIABLE))
    die_with_parent(parent)
    become_subreaper()
    with suppress(OSError):  # rather this process than its parent, when memory runs out
        Path("/proc/self/oom_score_adj").write_text("500")
    return channel_from_fd(int(os.environ.pop(CHANNEL_VARIABLE)))
