"""Rows that stored functions return, as frozen values. Field names are column names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TakenRun:
    """A dirty run that this scheduler owns; (owner, epoch, claim_id) is its token."""

    run_id: str
    epoch: int
    claim_id: UUID
    source_hash: str
    status: str
    stopping: bool


@dataclass(frozen=True, slots=True)
class FrameBody:
    """A stored structure: full when `base_frame_no` is None, else a delta to that frame."""

    frame_no: int
    base_frame_no: int | None
    body: Json


@dataclass(frozen=True, slots=True)
class CommittedFrame:
    """What a frame commit did; `dirty` means that facts came after the load.

    `claimed` are the tasks of a fused claim, with the fields of ClaimedTask.
    """

    frame_no: int
    status: str
    applied_end: bool
    ready: int
    moved: int
    dirty: bool
    claimed: list[Json]


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A task that this worker holds; (attempt, claim_id) is its token."""

    run_id: str
    node_id: str
    iteration: int
    attempt: int
    claim_id: UUID
    queue: str
    source_hash: str
    failures: int
    waited_ms: float
    descriptor: Json
    needs: Json | None


@dataclass(frozen=True, slots=True)
class BeatVerdict:
    """An attempt that is not fine: `lost` is fenced, `cancelled` is asked to end."""

    run_id: str
    node_id: str
    iteration: int
    attempt: int
    claim_id: UUID
    verdict: Literal["lost", "cancelled"]


@dataclass(frozen=True, slots=True)
class StaleLease:
    """A lease whose end has passed; `late_seconds` by the database's clock."""

    run_id: str
    node_id: str
    iteration: int
    attempt: int
    claim_id: UUID
    owner: int
    late_seconds: float


@dataclass(frozen=True, slots=True)
class ReclaimedRun:
    """A run that was taken from a dead owner and handed on."""

    run_id: str
    previous_owner: int


@dataclass(frozen=True, slots=True)
class ExpiredProcess:
    """A process that was declared dead."""

    id: int
    kind: str
    host: str
    pid: int


@dataclass(frozen=True, slots=True)
class Repairs:
    """What a supervisor would find to do, and whether its own process row is `current`.

    There are expired `leases`, `runs` of dead owners, overdue rows (`due`), dead `processes`.
    """

    current: bool
    leases: bool
    runs: bool
    due: bool
    processes: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A stored bundle."""

    manifest: Json
    body: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a run's log."""

    seq: int
    at: datetime
    type: str
    node_id: str | None
    iteration: int | None
    attempt: int | None
    payload: Json
