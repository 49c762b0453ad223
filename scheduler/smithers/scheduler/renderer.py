"""The parent's side of a renderer: ask one child about one code version, within bounds.

A child that hangs, dies or runs out of memory costs the request that it was busy with: the
caller gets a typed error and the next request starts a new child.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from smithers.process.channel import ChannelClosedError, FrameTooLargeError
from smithers.process.child import Child, ChildSpec, Spawner
from smithers.process.environment import Mark, child_environment
from smithers.process.nursery import PYTHON, Nursery
from smithers.process.output import Pump
from smithers.process.settings import Settings
from smithers.scheduler.render_errors import ended, error_from, timed_out
from smithers.sql.rows import Json
from smithers.workflow.errors import RENDER_FAILED, RenderError

HOST: Final = "smithers.scheduler.render_host"
CHILDREN: Final = (HOST, "smithers.scheduler.render_work")
"""What a nursery imports for renderers."""
MEMORY_BYTES: Final = 2 * 1024**3
_LOAD_FACTOR: Final = 3.0  # imports of large libraries, from a cold disk
_GRACE_SECONDS: Final = 0.5  # for the child to print where it hangs
_OUTPUT_CHARACTERS: Final = 8_000

Spawn = Callable[[ChildSpec], Child]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderSettings:
    """What a renderer child gets: seconds and bytes for one render, parts of its environment, the
    module that it runs, and the seed of its hashes if that is to be a certain one.
    """

    seconds: float
    memory_bytes: int = MEMORY_BYTES
    home: Path
    database_url: str | None = None
    mark: Mark | None = None
    host: str = HOST
    hash_seed: int | None = None

    @classmethod
    def of(cls, settings: Settings, *, mark: Mark | None = None) -> RenderSettings:
        """Return what the process's settings say."""
        return cls(
            seconds=settings.render_timeout_seconds,
            home=settings.home,
            database_url=settings.database_url,
            mark=mark,
        )


@dataclass(frozen=True, slots=True)
class Admission:
    """A workflow that loads, and an input that fits it: its name, the input as stored JSON."""

    workflow: str
    input: object


class Renderer:
    """Loads the bundle unpacked at `folder` in a child, and asks it. One thread at a time may use
    it.
    """

    def __init__(self, spawn: Spawn, folder: Path, settings: RenderSettings) -> None:
        self._spawn = spawn
        self._folder = folder.resolve()
        self._settings = settings
        self._child: Child | None = None

    def admit(self, workflow: str | None, document: object) -> Admission:
        """Load the entry, find the workflow and validate its input, without rendering.

        `workflow` may be None when the entry defines only one. Raises RenderError: IMPORT_FAILED,
        ENVIRONMENT_MISSING, WORKFLOW_NOT_FOUND, WORKFLOW_AMBIGUOUS, INPUT_INVALID, RENDER_*.
        """
        answer = self._ask({"do": "admit", "workflow": workflow, "input": document})
        assert answer is not None
        return Admission(answer["workflow"], answer["input"])

    def readmit(self, workflow: str, stored: object) -> None:
        """See that a stored input fits the workflow as it is now. Raises as `admit`."""
        self._ask({"do": "readmit", "workflow": workflow, "input": stored})

    def render(
        self, workflow: str, snapshot: Json, *, frames: Sequence[Json] | None
    ) -> Json | None:
        """Render a run and plan; return the frame document of the decision.

        `frames` are the stored structures since the last full one; None says that the last frame
        that this renderer gave for the run was stored, and the answer is None if it has forgotten
        it. Raises RenderError: what `admit` raises, RENDER_FAILED, RENDER_TIMEOUT,
        RENDER_OUT_OF_MEMORY, and whatever the pure core refuses a frame for.
        """
        rows = {**snapshot, "frames": list(frames or ())}
        return self._ask(
            {"do": "render", "workflow": workflow, "snapshot": rows, "recall": frames is None}
        )

    def graph(self, workflow: str | None, document: object) -> Json:
        """Return the structure of the first frame that this input gives, as JSON. Raises as
        `render`.
        """
        answer = self._ask({"do": "graph", "workflow": workflow, "input": document})
        assert answer is not None
        return answer

    def inspect(self, workflow: str | None, document: object) -> Json:
        """Ask a host that knows how (`smithers.operations.lint_host`). Raises as `render`."""
        answer = self._ask({"do": "inspect", "workflow": workflow, "input": document})
        assert answer is not None
        return answer

    def close(self) -> None:
        """End the child with all that it started; twice is fine, and so is asking again later."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.close()

    def abort(self) -> None:
        """Kill the child under whoever is asking it, from another thread; they get an error."""
        child = self._child
        if child is not None:
            child.kill()

    def _ask(self, request: Json) -> Json | None:
        if self._child is None:
            self._child = self._start()
            self._exchange({"do": "load"}, self._settings.seconds * _LOAD_FACTOR)
        return self._exchange(request, self._settings.seconds)

    def _start(self) -> Child:
        settings = self._settings
        seed = {} if settings.hash_seed is None else {"PYTHONHASHSEED": str(settings.hash_seed)}
        return self._spawn(
            ChildSpec(
                argv=[*PYTHON, settings.host, str(self._folder), str(settings.memory_bytes)],
                environ={
                    **child_environment(
                        settings.mark, home=str(settings.home), database_url=settings.database_url
                    ),
                    **seed,
                },
                mark=settings.mark,
                cwd=self._folder,
            )
        )

    def _exchange(self, request: Json, seconds: float) -> Json | None:
        child = self._child
        assert child is not None
        child.output.begin(None)
        try:
            child.channel.send(request, timeout=seconds)
            reply = cast("Json", self._receive(child, seconds))
            error = error_from(reply["error"]) if "error" in reply else None
            answer: Json | None = None if error else reply["ok"]
        except TimeoutError:
            output = self._end_child(child)
            raise timed_out(seconds, where=self._innermost(output), output=output) from None
        except ChannelClosedError:
            child.wait(1.0)
            status = child.poll()
            raise ended(status, output=self._end_child(child)) from None
        except (FrameTooLargeError, ValueError, TypeError, KeyError):
            self._end_child(child)
            raise RenderError(RENDER_FAILED, "the renderer's answer can't be read") from None
        if reply.get("broken"):  # half an import, memory in pieces or nearly full
            self._end_child(child)
        if error is not None:
            raise error
        return answer

    def _receive(self, child: Child, seconds: float) -> object:
        try:
            return child.channel.receive(timeout=seconds)
        except TimeoutError:
            child.signal(signal.SIGUSR1)  # it prints where it is
            return child.channel.receive(timeout=_GRACE_SECONDS)

    def _end_child(self, child: Child) -> str:
        """Kill the child; return the end of what it printed."""
        self._child = None
        child.kill()
        output = child.output.end()
        child.close()
        return output[-_OUTPUT_CHARACTERS:].replace(f"{self._folder}/", "")

    def _innermost(self, output: str) -> str:
        """Return `path:line` of the innermost frame of the bundle in a dump of faulthandler's."""
        dump = output.rpartition("(most recent call first)")[2]
        for path, line in re.findall(r'File "([^"]+)", line (\d+) in', dump):
            if not Path(path).is_absolute():  # the bundle's folder has been cut off
                return f"{path}:{line}"
        return ""


@contextmanager
def open_renderer(
    folder: Path, settings: RenderSettings, nursery: Nursery | None = None
) -> Generator[Renderer, None, None]:
    """A renderer for a few questions from one thread, ended with the block: `up` admits so."""
    pump = Pump()
    spawner = Spawner(lambda: None, pump=pump, nursery=nursery and nursery.share())
    renderer = Renderer(spawner.spawn, folder, settings)
    try:
        yield renderer
    finally:
        renderer.close()
        spawner.close()
        pump.close()
