"""`smithers up` as a child of the demo, just as a person would start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from smithers.process.kill import Tree, kill_tree
from smithers.process.procfs import process
from smithers.process.settings import Settings

LEASE_SECONDS: Final = 2.0
"""Short, so that a demo shows in seconds what takes half a minute by default."""


class Engine:
    """One `smithers up`; each line that it prints is given to `say` as it comes."""

    def __init__(self, settings: Settings, words: list[str], say: Callable[[str], None]) -> None:
        lease = {"SMITHERS_LEASE_SECONDS": f"{LEASE_SECONDS:g}"}
        for name in ("SMITHERS_HEARTBEAT_SECONDS", "SMITHERS_SUPERVISOR_POLL_SECONDS"):
            os.environ.pop(name, None)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "smithers.cli.main", "up", *words],
            env={**os.environ, **settings.environment(), **lease},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(say,), daemon=True)
        self._reader.start()

    @classmethod
    def begin(
        cls,
        settings: Settings,
        workflow: Path,
        run_id: str,
        document: Mapping[str, object],
        say: Callable[[str], None],
    ) -> Engine:
        """Start a run."""
        words = [str(workflow), "--run-id", run_id, "--input", json.dumps(document)]
        return cls(settings, words, say)

    @classmethod
    def resume(
        cls, settings: Settings, workflow: Path, run_id: str, say: Callable[[str], None]
    ) -> Engine:
        """Go on with a run."""
        return cls(settings, [str(workflow), "--run-id", run_id, "--resume"], say)

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def code(self) -> int | None:
        """The exit code, None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait for its end, and for its last line; give the exit code."""
        code = self._process.wait()
        self._reader.join(1.0)
        return code

    def kill(self) -> None:
        """SIGKILL to it and to all that descends from it, agents too."""
        found = process(self.pid)
        if found is not None:
            kill_tree(Tree(pid=self.pid, started=found.started, mark=None))
        self.wait()

    def stop(self) -> None:
        """SIGTERM: it drains and leaves the run resumable. Nothing happens when it has ended."""
        if self.code() is None:
            self._process.terminate()
            self.wait()

    def _read(self, say: Callable[[str], None]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                say(line.rstrip("\n"))
