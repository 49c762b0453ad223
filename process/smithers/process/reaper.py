"""Who has ended, and how: the one place of a process that waits for pids.

A worker is a subreaper, so processes that it never started become its children and must be
reaped. `waitpid(-1)` would take the status of children that other code (subprocess, the
embedded database) waits for; so known children are waited for by pid, and a stranger is
reaped only when it has been a zombie of another session in two looks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from smithers.process.procfs import processes


class Reaper:
    """Waits for children by pid and reaps strangers that were left to this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: dict[int, int | None] = {}
        self._zombies: set[tuple[int, int]] = set()

    @contextmanager
    def starting(self) -> Generator[Callable[[int], None], None, None]:
        """Start a child inside, and call what is given with its pid.

        Nobody reaps meanwhile: a child that ends at once is not taken for a stranger.
        """
        with self._lock:
            yield self._expect

    def _expect(self, pid: int) -> None:
        self._statuses[pid] = None

    def forget(self, pid: int) -> None:
        """Let go of a child whose status has been seen."""
        with self._lock:
            self._statuses.pop(pid, None)

    def status(self, pid: int) -> int | None:
        """The exit code of a child, minus the signal's number if one ended it, None if it lives.

        A child whose status somebody else has taken counts as ended with 0.
        """
        with self._lock:
            known = self._statuses.get(pid)
            if known is not None:
                return known
            try:
                reaped, raw = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                return 0
            if reaped == 0:
                return None
            code = os.waitstatus_to_exitcode(raw)
            if pid in self._statuses:
                self._statuses[pid] = code
            return code

    def reap_strangers(self) -> int:
        """Reap descendants that were left to this process; returns how many."""
        me = os.getpid()
        session = os.getsid(0)
        zombies = {
            (proc.pid, proc.started)
            for proc in processes().values()
            if proc.parent == me and proc.dead and proc.session != session
        }
        reaped = 0
        with self._lock:
            for pid, started in zombies & self._zombies:
                if pid in self._statuses:
                    continue
                try:
                    os.waitpid(pid, os.WNOHANG)
                    reaped += 1
                except ChildProcessError:
                    zombies.discard((pid, started))
            self._zombies = zombies
        return reaped


REAPER = Reaper()
"""The reaper of this process: children belong to the process, not to an object in it."""
