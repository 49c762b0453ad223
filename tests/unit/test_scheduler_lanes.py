from __future__ import annotations

from typing import cast
from uuid import UUID

import pytest

from smithers.observability.logs import Log
from smithers.scheduler import lanes, waiting
from smithers.scheduler.advance import OwnedRun
from smithers.scheduler.lane import Lane
from smithers.scheduler.lanes import MAX_LANES, MAX_LANES_OF_VERSION, SPARE_LIMIT, Lanes
from smithers.scheduler.waiting import Waiting


class FakeLane:
    """A lane that does a step only when the test says so."""

    def __init__(self, source_hash: str, waiting: Waiting) -> None:
        self.source_hash = source_hash
        self.waiting = waiting
        self.busy_since: float | None = None
        self.idle_since = 0.0
        self.living = True

    def start(self) -> None:
        """Nothing runs."""

    def alive(self) -> bool:
        return self.living

    def join(self, timeout: float | None) -> bool:
        del timeout
        return True

    def begin(self) -> None:
        assert self.waiting.take() is not None
        self.busy_since = 1.0

    def end(self, at: float = 0.0) -> None:
        self.busy_since, self.idle_since = None, at


class Yard:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.opened: list[FakeLane] = []
        for module in (lanes, waiting):
            monkeypatch.setattr(module, "monotonic", lambda: self.now)
        self.lanes = Lanes(self.open_lane, Log())

    def open_lane(self, source_hash: str, waiting: Waiting) -> Lane:
        self.opened.append(FakeLane(source_hash, waiting))
        return cast("Lane", self.opened[-1])

    def run(self, version: int, number: int = 0) -> None:
        run_id = f"r{version}-{number}"
        source_hash = f"{version:064x}"
        self.lanes.dispatch(OwnedRun(run_id, source_hash, 1, 1, UUID(int=1), stopping=False))
        self.lanes.tend()


@pytest.fixture
def yard(monkeypatch: pytest.MonkeyPatch) -> Yard:
    return Yard(monkeypatch)


def test_a_version_has_one_lane_while_it_keeps_up(yard: Yard) -> None:
    for number in range(10):
        yard.run(1, number)
    assert yard.lanes.count() == 1
    assert yard.lanes.next_look() == 0.5


def test_runs_that_wait_behind_a_hang_get_spare_lanes(yard: Yard) -> None:
    yard.run(1)
    yard.opened[0].begin()
    for number in range(1, 10):
        yard.run(1, number)
        yard.now += 0.6
        yard.lanes.tend()
    assert yard.lanes.count() == MAX_LANES_OF_VERSION


def test_the_longest_idle_version_makes_room(yard: Yard) -> None:
    for version in range(MAX_LANES):
        yard.run(version)
        yard.opened[version].begin()
        yard.opened[version].end(at=1000.0 + version)
    yard.now = 1030.0
    yard.run(99)
    assert yard.lanes.count() == MAX_LANES
    assert yard.opened[-1].source_hash == f"{99:064x}"
    assert yard.opened[0].waiting.take() is None, "it was asked to end"


def test_busy_lanes_are_never_ended_for_another(yard: Yard) -> None:
    for version in range(MAX_LANES):
        yard.run(version)
        yard.opened[version].begin()
    yard.run(99)
    assert yard.lanes.count() == MAX_LANES
    assert len(yard.lanes.clear()) == 1
    yard.run(99)
    yard.opened[3].end(at=1000.0)
    yard.now = 1001.0
    yard.lanes.tend()
    assert yard.opened[-1].source_hash == f"{99:064x}"


def test_spare_lanes_leave_room_for_versions_without_one(yard: Yard) -> None:
    for version in range(4):
        for number in range(5):
            yard.run(version, number)
            yard.now += 0.6
            yard.lanes.tend()
    assert yard.lanes.count() == SPARE_LIMIT + 1
    for version in range(10, 13):
        yard.run(version)
    assert {lane.source_hash for lane in yard.opened} >= {f"{v:064x}" for v in range(10, 13)}
    assert yard.lanes.count() == MAX_LANES


def test_a_lane_that_nobody_needs_ends(yard: Yard) -> None:
    yard.run(1)
    yard.opened[0].begin()
    yard.opened[0].end(at=1000.0)
    yard.now = 1059.0
    yard.lanes.tend()
    assert yard.lanes.count() == 1
    yard.now = 1061.0
    yard.lanes.tend()
    assert yard.lanes.count() == 0


def test_a_lane_whose_thread_died_is_replaced(yard: Yard) -> None:
    yard.run(1)
    yard.opened[0].living = False
    yard.run(1, 2)
    assert yard.lanes.count() == 1
    assert len(yard.opened) == 2
