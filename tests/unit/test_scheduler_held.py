from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from smithers.scheduler import held, pace
from smithers.scheduler.advance import OwnedRun
from smithers.scheduler.held import Held
from smithers.scheduler.pace import Pace
from smithers.scheduler.reports import Outcome, Report


def run(run_id: str = "r1", epoch: int = 1) -> OwnedRun:
    return OwnedRun(run_id, "0" * 64, 1, epoch, UUID(int=epoch), stopping=False)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [100.0]
    monkeypatch.setattr(held, "monotonic", lambda: now[0])
    monkeypatch.setattr(pace, "monotonic", lambda: now[0])

    def advance(seconds: float) -> None:
        now[0] += seconds

    return advance


def test_a_run_is_in_one_lane_at_a_time(clock: Callable[[float], None]) -> None:
    runs = Held()
    assert runs.begin(run())
    assert not runs.begin(run())
    assert runs.busy() == 1
    assert runs.rest(run()), "it was dirty again while a lane had it"
    assert not runs.rest(run())
    assert runs.begin(run())


def test_a_run_that_was_taken_again_while_it_was_given_up_is_not_lost(
    clock: Callable[[float], None],
) -> None:
    runs = Held()
    runs.begin(run())
    assert not runs.begin(run(epoch=2))
    assert runs.drop(run())
    assert runs.begin(run(epoch=2))


def test_a_run_at_rest_is_given_up_after_a_while(clock: Callable[[float], None]) -> None:
    runs = Held()
    runs.begin(run("r1"))
    runs.begin(run("r2"))
    runs.rest(run("r1"))
    assert runs.idle() == []
    assert runs.next_look() == 10.0
    clock(10.1)
    assert runs.idle() == ["r1"]
    runs.forget(["r1"])
    assert runs.idle() == []
    assert runs.clear() == ["r2"]


def test_a_step_that_failed_waits_before_it_is_done_again(clock: Callable[[float], None]) -> None:
    runs = Held()
    runs.begin(run())
    runs.again(run(), 0.5)
    assert not runs.begin(run()), "a take may give it again meanwhile"
    assert runs.due() == []
    clock(0.6)
    assert runs.due() == [run()]
    assert runs.begin(run())


def test_the_delay_grows_and_is_bounded() -> None:
    delays = [Report(run(), Outcome.AGAIN, tries=tries).delay for tries in (0, 1, 2, 3, 20)]
    assert delays == [0.0, 0.1, 0.2, 0.4, 5.0]


def queries(paced: Pace, clock: Callable[[float], None], seconds: float) -> int:
    """Count what an idle scheduler asks in this time."""
    asked, left = 0, seconds
    while left > 0:
        if paced.take_is_due():
            paced.took(0, listening=True)
            asked += 1
        if paced.look_is_due():
            paced.looked(None)
            asked += 1
        pause = paced.sleep()
        clock(pause + 1e-6)
        left -= pause
    return asked


def test_an_idle_scheduler_asks_seldom(clock: Callable[[float], None]) -> None:
    paced = Pace()
    queries(paced, clock, 20)
    assert queries(paced, clock, 600) <= 130


def test_a_due_row_is_fired_at_its_time_and_not_before(clock: Callable[[float], None]) -> None:
    paced = Pace()
    for _ in range(2):  # the first after work is followed by another one soon
        paced.took(0, listening=True)
    paced.looked(3.0)
    assert not paced.fire_is_due()
    assert paced.sleep() == 3.0
    clock(3.0)
    assert paced.fire_is_due()
    paced.fired(0)
    assert not paced.fire_is_due()
    assert 0 < paced.sleep() <= 1.0, "another process fires it: look again soon, not at once"
    paced.looked(0.0)
    paced.fired(2)
    assert paced.take_is_due()


def test_many_notifications_are_one_take(clock: Callable[[float], None]) -> None:
    paced = Pace()
    paced.took(0, listening=True)
    paced.wake()
    paced.wake()
    assert not paced.take_is_due()
    clock(0.01)
    assert paced.take_is_due()


def test_others_get_time_to_beat_after_an_outage(clock: Callable[[float], None]) -> None:
    paced = Pace(take_after=2.0)
    assert not paced.take_is_due()
    clock(2.0)
    assert paced.take_is_due()
