from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator
from datetime import timedelta
from typing import Any, Self

import psycopg
import pytest

from smithers.sql import processes, worker
from smithers.sql import supervisor as supervisor_sql
from smithers.sql.calls import Connection
from smithers.supervisor.duties import Repair
from smithers.supervisor.rounds import DeclaredDeadError, Policy, Rounds, would_do
from support import factory
from support.runs import connect

LEASE = timedelta(seconds=30)
EXPIRED = timedelta(seconds=-1)


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def conn(database: str) -> Generator[Connection, None, None]:
    with connect(database) as connection:
        yield connection


@pytest.fixture
def clock() -> Clock:
    return Clock()


def policy(**more: object) -> Policy:
    return Policy(**{"lease": 30.0, "heartbeat": 5.0, "poison": 3, **more})  # type: ignore[arg-type]


def supervisor(conn: Connection) -> int:
    return factory.register(conn, "supervisor")


def one_round(rounds: Rounds, conn: Connection, owner: int) -> Counter[str]:
    repairs = rounds.run_once(conn, owner, own_lease=LEASE)
    return Counter(repair.duty for repair in repairs if repair.duty != "orphan")


def lost_attempts(conn: Connection, count: int, run_id: str = "r1") -> None:
    """Tasks in progress whose worker has died."""
    scheduler = factory.register(conn, "scheduler")
    factory.make_run(conn, run_id)
    factory.make_ready(conn, scheduler, run_id, [f"t{n:04}" for n in range(count)])
    worker_id = factory.register(conn, "worker")
    assert len(factory.claim(conn, worker_id, limit=count, lease=EXPIRED)) == count


def attempts(conn: Connection) -> Counter[str]:
    rows = conn.execute("select state, count(*) from smithers.attempts group by state").fetchall()
    return Counter(dict(rows))


def test_an_expired_lease_is_believed_at_the_second_look(conn: Connection, clock: Clock) -> None:
    lost_attempts(conn, 2)
    rounds, owner = Rounds(policy(), clock=clock), supervisor(conn)
    assert one_round(rounds, conn, owner) == Counter()
    clock.now += 9.9
    assert one_round(rounds, conn, owner) == Counter()
    clock.now += 0.2
    assert one_round(rounds, conn, owner) == Counter(attempt=2)
    assert attempts(conn) == Counter(abandoned=2)
    assert one_round(rounds, conn, owner) == Counter()


def test_a_lease_that_was_renewed_in_between_is_left_alone(conn: Connection, clock: Clock) -> None:
    lost_attempts(conn, 1)
    rounds, owner = Rounds(policy(), clock=clock), supervisor(conn)
    one_round(rounds, conn, owner)
    conn.execute("update smithers.leases set lease_until = smithers.now() + interval '1 hour'")
    clock.now += 11
    assert one_round(rounds, conn, owner) == Counter()
    conn.execute("update smithers.leases set lease_until = smithers.now() - interval '1 second'")
    clock.now += 11
    assert one_round(rounds, conn, owner) == Counter(), "it begins anew"


def test_after_an_outage_nothing_is_believed_for_a_lease(conn: Connection, clock: Clock) -> None:
    lost_attempts(conn, 1)
    dead = factory.register(conn, "scheduler", lease=-2 * LEASE)
    factory.make_run(conn, "orphan")
    factory.take(conn, dead, "orphan")
    rounds, owner = Rounds(policy(), clock=clock), supervisor(conn)
    rounds.lost_sight()
    for _ in range(5):
        assert one_round(rounds, conn, owner) == Counter()
        clock.now += 5.9
    clock.now += 1
    assert one_round(rounds, conn, owner) == Counter(attempt=1, run=1, process=1)


def test_an_answer_that_was_late_counts_as_an_outage(
    conn: Connection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database hung: no query failed, but for as long as ours took nobody could beat."""
    lost_attempts(conn, 1)
    rounds, owner = Rounds(policy(), clock=clock), supervisor(conn)
    assert one_round(rounds, conn, owner) == Counter()
    look = supervisor_sql.beat_and_look

    def hang(*given: Any, **named: Any) -> Any:
        clock.now += 60
        return look(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(supervisor_sql, "beat_and_look", hang)
        assert one_round(rounds, conn, owner) == Counter()
    clock.now += 29
    assert one_round(rounds, conn, owner) == Counter()
    clock.now += 11
    assert one_round(rounds, conn, owner) == Counter(attempt=1)


def test_a_failed_query_between_two_looks_counts_as_no_look(conn: Connection, clock: Clock) -> None:
    lost_attempts(conn, 1)
    rounds, owner = Rounds(policy(lease=1.0), clock=clock), supervisor(conn)
    one_round(rounds, conn, owner)
    clock.now += 11
    rounds.lost_sight()
    clock.now += 2
    assert one_round(rounds, conn, owner) == Counter()
    clock.now += 11
    assert one_round(rounds, conn, owner) == Counter(attempt=1)


def test_a_threshold_and_named_runs_narrow_what_is_reclaimed(
    conn: Connection, clock: Clock
) -> None:
    lost_attempts(conn, 1, "r1")
    lost_attempts(conn, 1, "r2")
    owner = supervisor(conn)
    conn.execute("update smithers.leases set lease_until = smithers.now() - interval '20 seconds'")
    for narrow, expected in (({"threshold": 60.0}, 0), ({"run_ids": frozenset({"r2"})}, 1)):
        rounds = Rounds(policy(**narrow), clock=clock)
        one_round(rounds, conn, owner)
        clock.now += 11
        assert one_round(rounds, conn, owner)["attempt"] == expected
    rounds = Rounds(policy(threshold=45.0), clock=clock)
    one_round(rounds, conn, owner)
    clock.now += 11
    assert one_round(rounds, conn, owner)["attempt"] == 1


def test_a_key_that_kills_its_workers_is_poisoned(conn: Connection, clock: Clock) -> None:
    lost_attempts(conn, 1)
    owner, worker_id = supervisor(conn), factory.register(conn, "worker")
    scheduler = factory.register(conn, "scheduler")
    rounds = Rounds(policy(poison=2), clock=clock)
    one_round(rounds, conn, owner)
    clock.now += 11
    assert one_round(rounds, conn, owner)["attempt"] == 1
    # The scheduler that owned the run hands it on, another makes the task ready again.
    conn.execute("update smithers.run_state set owner = null")
    run = factory.take(conn, scheduler, "r1")
    ready = {
        "node_id": "t0000",
        "iteration": 0,
        "queue": "default",
        "priority": 0,
        "descriptor_hash": factory.DESCRIPTOR_HASH,
        "alone": True,
    }
    from smithers.sql.scheduler import commit_frame

    commit_frame(conn, factory.frame(conn, run, scheduler, ready=[ready]))
    assert [task.attempt for task in factory.claim(conn, worker_id, lease=EXPIRED)] == [2]
    one_round(rounds, conn, owner)
    clock.now += 11
    assert one_round(rounds, conn, owner)["attempt"] == 1
    state = conn.execute("select state, error->>'code' from smithers.nodes").fetchone()
    assert state == ("failed", "POISONED")


def test_runs_of_a_dead_scheduler_are_handed_on(conn: Connection, clock: Clock) -> None:
    dead = factory.register(conn, "scheduler", lease=EXPIRED)
    factory.make_run(conn, "r1")
    factory.take(conn, dead, "r1")
    rounds, owner = Rounds(policy(), clock=clock), supervisor(conn)
    assert one_round(rounds, conn, owner) == Counter(run=1)
    row = conn.execute("select owner, epoch, dirty from smithers.run_state").fetchone()
    assert row == (None, 2, True)
    living = factory.register(conn, "scheduler")
    assert factory.take(conn, living, "r1").epoch == 3
    assert one_round(rounds, conn, owner) == Counter()


def test_dead_processes_are_declared_dead_after_another_lease(
    conn: Connection, clock: Clock
) -> None:
    young = factory.register(conn, "worker", lease=EXPIRED)
    old = factory.register(conn, "worker", lease=-2 * LEASE)
    rounds, owner = Rounds(policy(), clock=clock), supervisor(conn)
    assert one_round(rounds, conn, owner) == Counter(process=1)
    assert not processes.beat_process(conn, old, LEASE)
    assert processes.beat_process(conn, young, LEASE)


def test_a_supervisor_that_was_declared_dead_is_told(conn: Connection, clock: Clock) -> None:
    owner = supervisor(conn)
    processes.stop_process(conn, owner)
    with pytest.raises(DeclaredDeadError):
        Rounds(policy(), clock=clock).run_once(conn, owner, own_lease=LEASE)


class CountingCursor(psycopg.Cursor[Any]):
    count = 0

    def execute(self, *args: Any, **kwargs: Any) -> Self:
        CountingCursor.count += 1
        return super().execute(*args, **kwargs)


def test_an_idle_round_is_one_query(conn: Connection, clock: Clock) -> None:
    rounds, owner = Rounds(policy(), clock=clock), supervisor(conn)
    one_round(rounds, conn, owner)
    conn.cursor_factory = CountingCursor
    CountingCursor.count = 0
    for _ in range(5):
        assert one_round(rounds, conn, owner) == Counter()
    assert CountingCursor.count == 5


def test_a_dry_run_tells_everything_and_changes_nothing(conn: Connection) -> None:
    lost_attempts(conn, 3)
    dead = factory.register(conn, "scheduler", lease=-2 * LEASE)
    factory.make_run(conn, "r9")
    factory.take(conn, dead, "r9")
    for _ in range(2):
        found = Counter(repair.duty for repair in would_do(conn, policy()))
        assert found == Counter(attempt=3, run=1, process=1)
    assert attempts(conn) == Counter({"in-progress": 3})
    assert conn.execute("select count(*) from smithers.leases").fetchone() == (3,)


@pytest.mark.slow
def test_five_supervisors_reclaim_each_of_500_once(database: str, conn: Connection) -> None:
    lost_attempts(conn, 500)
    barrier = threading.Barrier(5)
    results: list[list[Repair] | BaseException] = []

    def supervise() -> None:
        try:
            with connect(database) as mine:
                owner = supervisor(mine)
                clock = Clock()
                rounds = Rounds(policy(), clock=clock)
                rounds.run_once(mine, owner, own_lease=LEASE)
                clock.now += 11
                barrier.wait(30)
                results.append(rounds.run_once(mine, owner, own_lease=LEASE))
        except BaseException as error:  # noqa: BLE001  shown by the assertion
            results.append(error)

    threads = [threading.Thread(target=supervise) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(result, list) for result in results), results
    repaired = [r.what for result in results if isinstance(result, list) for r in result]
    assert len(repaired) == len(set(repaired)) == 500
    assert attempts(conn) == Counter(abandoned=500)
    row = conn.execute(
        "select count(*), max(seq), count(distinct seq) from smithers.events where run_id = 'r1'"
    ).fetchone()
    assert row is not None
    assert row[0] == row[1] == row[2]


def test_the_late_writer_of_a_reclaimed_attempt_is_refused(conn: Connection, clock: Clock) -> None:
    lost_attempts(conn, 1)
    lease = conn.execute("select attempt, claim_id from smithers.leases").fetchone()
    assert lease is not None
    rounds, owner = Rounds(policy(), clock=clock), supervisor(conn)
    one_round(rounds, conn, owner)
    clock.now += 11
    one_round(rounds, conn, owner)
    item = {
        "run_id": "r1",
        "node_id": "t0000",
        "iteration": 0,
        "attempt": lease[0],
        "claim_id": str(lease[1]),
        "state": "failed",
        "error": {"code": "TASK_FAILED", "message": "too late"},
    }
    assert worker.end_attempts(conn, [item]) == [False]
