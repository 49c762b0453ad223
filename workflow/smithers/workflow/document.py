"""The document of a frame: what `commit_frame` takes, but for the run's token."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from smithers.workflow.decision import Blocked, Consume, Decision, Move, Static
from smithers.workflow.descriptor import Descriptor
from smithers.workflow.frame import FrameStructure, StoredStructure
from smithers.workflow.keys import NodeKey
from smithers.workflow.shapes import Shape
from smithers.workflow.states import NodeKind, RunStatus

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Mount:
    """A row that is new, or whose descriptor or upstream has changed."""

    key: NodeKey
    kind: NodeKind
    upstream: tuple[NodeKey, ...] = ()
    descriptor: Descriptor | None = None


@dataclass(frozen=True, slots=True)
class FrameDoc:
    """One frame: everything that a render and its plan decided.

    `structure` is what the next frame follows, once this one is committed. The statements of
    the document apply in this order: mount, moves (in their order), requests, consume,
    statics, ready, status.
    """

    run_id: str
    wanted_seq: int
    trigger: str
    stored: StoredStructure | None
    decision: Decision
    mounts: tuple[Mount, ...] = ()
    moves: tuple[Move, ...] = ()
    statics: tuple[tuple[Static, Descriptor], ...] = ()
    consumed: tuple[Consume, ...] = ()
    ready: tuple[tuple[NodeKey, str], ...] = ()
    known: frozenset[str] = frozenset()
    exhausted: tuple[str, ...] = ()
    tolerated: tuple[NodeKey, ...] = ()

    @property
    def status(self) -> RunStatus:
        """The run's status after the frame."""
        return self.decision.status

    @property
    def blocked(self) -> tuple[Blocked, ...]:
        """What the run waits for."""
        return self.decision.blocked

    @property
    def structure(self) -> FrameStructure | None:
        """The structure that the next frame follows, if this one is committed."""
        return self.stored.after if self.stored else None

    def to_json(self) -> Json:
        """Give the document."""
        decision = self.decision
        made = [each.descriptor for each in self.mounts if each.descriptor is not None]
        hashes = dict(self.ready)
        return {
            "run_id": self.run_id,
            "wanted_seq": self.wanted_seq,
            "trigger": self.trigger,
            "structure": {
                "base": self.stored.base if self.stored else None,
                "body": self.stored.body if self.stored else None,
            },
            "descriptors": _descriptors(made, self.known),
            "outputs": _shapes(made),
            "mount": [_mount(each) for each in self.mounts],
            "moves": [_move(each) for each in self.moves],
            "statics": [_static(*each) for each in self.statics],
            "consume": [
                {**_key(each.key), "name": each.name, "signal_seq": each.signal_seq}
                for each in self.consumed
            ],
            "ready": [
                {
                    **_key(each.key),
                    "queue": each.queue,
                    "priority": each.priority,
                    "descriptor_hash": hashes.get(each.key),
                    "alone": each.alone,
                }
                for each in decision.ready
            ],
            **_requests(decision),
            "status": decision.status.value,
            "error": decision.error,
            "blocked": [each.to_json() for each in decision.blocked],
            "exhausted": list(self.exhausted),
            "tolerated": [_key(key) for key in self.tolerated],
        }


def _requests(decision: Decision) -> Json:
    return {
        "approvals": [
            {
                **_key(each.key),
                "title": each.title,
                "summary": each.summary,
                "timeout": each.timeout,
                "digest": each.digest,
            }
            for each in decision.approvals
        ],
        "human": [
            {
                **_key(each.key),
                "prompt": each.prompt,
                "schema": each.schema,
                "timeout": each.timeout,
            }
            for each in decision.humans
        ],
        "timers": [
            {
                **_key(each.key),
                "seconds": each.seconds,
                "until": each.until and each.until.isoformat(),
            }
            for each in decision.timers
        ],
    }


def _key(key: NodeKey) -> Json:
    return {"node_id": key[0], "iteration": key[1]}


def _mount(mount: Mount) -> Json:
    return {
        **_key(mount.key),
        "kind": mount.kind.value,
        "upstream": [list(key) for key in mount.upstream],
        "descriptor_hash": mount.descriptor and mount.descriptor.hash,
    }


def _move(move: Move) -> Json:
    return {
        **_key(move.key),
        "from": move.old.value,
        "to": move.new.value,
        "error": move.error,
        "due_in": move.due_in,
        "due_at": None,
        "detail": move.detail,
    }


def _static(static: Static, descriptor: Descriptor) -> Json:
    assert descriptor.shape is not None
    return {
        **_key(static.key),
        "name": descriptor.shape.name,
        "shape": descriptor.shape.hash,
        "output": static.output,
    }


def _descriptors(made: Iterable[Descriptor], known: frozenset[str]) -> list[Json]:
    fresh: Mapping[str, Descriptor] = {each.hash: each for each in made if each.hash not in known}
    return [{"hash": each.hash, "body": json.loads(each.text)} for each in fresh.values()]


def _shapes(made: Iterable[Descriptor]) -> list[Json]:
    shapes: dict[tuple[str, str], Shape] = {}
    for each in made:
        if each.shape is not None:
            shapes[each.shape.name, each.shape.hash] = each.shape
    return [shape.to_json() for shape in shapes.values()]
