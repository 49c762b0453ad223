"""Play a workflow to its end on made-up outputs, and note every node that it mounts."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from smithers.operations.lint_invent import Uninventable, invent
from smithers.sql.rows import Json
from smithers.testing.errors import HarnessError
from smithers.testing.people import People
from smithers.testing.player import Player
from smithers.testing.rows import START
from smithers.testing.scripts import Scripts
from smithers.testing.store import RunStore
from smithers.workflow.attempts import AttemptError
from smithers.workflow.context import Ctx
from smithers.workflow.definition import Workflow
from smithers.workflow.keys import NodeKey
from smithers.workflow.nodes import Child

MAX_FRAMES: Final = 60
_DOING: Final = {
    "socket.connect": "connects to the network",
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.exec": "starts a program",
    "os.posix_spawn": "starts a program",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.mkdir": "makes a folder",
}
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


@dataclass(slots=True)
class Play:
    """What one play mounted: by "id" or "id[pass]" its descriptor; why it went no further."""

    nodes: dict[str, Json]
    notes: list[str]


@dataclass
class Watch:
    """Sees what a workflow function does to the world while it renders."""

    seen: dict[str, None] = field(default_factory=dict[str, None])
    _on: bool = False

    def __post_init__(self) -> None:
        sys.addaudithook(self._hook)  # for the life of this process, which is one lint

    def around(self, workflow: Workflow) -> Workflow:
        """The same workflow, watched."""

        def watched(ctx: Ctx[Any]) -> Child:
            with self._watching():
                return workflow.function(ctx)

        return replace(workflow, function=watched)

    def findings(self) -> list[Json]:
        """What was seen."""
        return [
            {
                "code": "IMPURE_RENDER",
                "level": "warning",
                "message": f"the workflow function {what} while it renders",
                "fix": "renders happen many times: do it in a task",
            }
            for what in self.seen
        ]

    @contextmanager
    def _watching(self) -> Generator[None]:
        self._on = True
        try:
            yield
        finally:
            self._on = False

    def _hook(self, event: str, args: tuple[object, ...]) -> None:
        if not self._on:
            return
        if event in _DOING:
            self.seen[_DOING[event]] = None
        elif event == "open" and isinstance(args[2], int) and args[2] & _WRITING:
            self.seen[f"writes {args[0]}"] = None


class _Invented(Scripts):
    """A script for every task: a made-up output."""

    def __init__(self, store: RunStore) -> None:
        super().__init__("invented", None)
        self._store = store

    def __contains__(self, node_id: object) -> bool:
        return True

    def next(self, node_id: str) -> object:
        """Raises AttemptError for a model of which nothing valid can be made up."""
        key = max(each for each in self._store.nodes if each[0] == node_id)
        path = str(self._store.descriptor(key)["output"]["model"])
        try:
            return invent(find(path))
        except Uninventable as error:
            raise AttemptError("UNINVENTABLE", str(error)) from error


def play(workflow: Workflow, stored: Json, watch: Watch) -> Play:
    """Play a run on an admitted input. Raises what a frame raises."""
    run_input = workflow.stored_input(stored)
    store = RunStore(watch.around(workflow), run_input, run_id="lint", now=START, config={})
    invented = _Invented(store)
    people = People(approve=True, humans=None)
    player = Player(store, invented, invented, people, time_skipping=True, max_frames=MAX_FRAMES)
    notes: list[str] = []
    try:
        player.go_on()
    except HarnessError:
        notes.append(f"looked at the first {MAX_FRAMES} frames only")
    notes += [
        f"beyond {key[0]!r} nothing was looked at: {row.error['message']}"
        for key, row in store.nodes.items()
        if row.error and row.error.get("code") == "UNINVENTABLE"
    ]
    return Play({_name(key): _descriptor(store, key) for key in store.nodes}, notes)


def find(path: str) -> Any:
    """The model or function that a descriptor names."""
    module, _, qualname = path.partition(":")
    found: object = sys.modules[module]
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _descriptor(store: RunStore, key: NodeKey) -> Json:
    known = store.memo.known.get(key[0])
    if known is None:
        return {"kind": str(store.nodes[key].kind)}
    return dict(store.descriptor(key))


def _name(key: NodeKey) -> str:
    return f"{key[0]}[{key[1]}]" if key[1] else key[0]
