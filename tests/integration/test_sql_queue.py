"""The queue's promises: order, caps, tasks that go alone, budgets, and no claim after a stop."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from smithers.sql import operator, scheduler, supervisor, worker
from smithers.sql.calls import Connection
from smithers.sql.rows import ClaimedTask
from support import factory
from support.runs import connect
from support.waiting import until

GONE = timedelta(seconds=-1)


def item(task: ClaimedTask, **more: object) -> dict[str, Any]:
    """The key and token of a task, and what is said of it."""
    return {
        "run_id": task.run_id,
        "node_id": task.node_id,
        "iteration": task.iteration,
        "attempt": task.attempt,
        "claim_id": str(task.claim_id),
        **more,
    }


class Shop:
    """A scheduler and a worker, as rows."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.scheduler = factory.register(connection, "scheduler")
        self.worker = factory.register(connection, "worker")

    def ready(self, run_id: str, names: Sequence[str]) -> None:
        factory.make_run(self.connection, run_id)
        factory.make_ready(self.connection, self.scheduler, run_id, names)

    def again(self, run_id: str, name: str) -> None:
        """Make a task ready that was given back, as the next frame does."""
        run = factory.take(self.connection, self.scheduler, run_id)
        key = {"node_id": name, "iteration": 0, "queue": "default", "priority": 0}
        parts = factory.frame(self.connection, run, self.scheduler, ready=[key])
        scheduler.commit_frame(self.connection, parts)

    def claim(self, limit: int, *, free: int = 100, lease: timedelta = factory.LEASE) -> list[str]:
        return [task.node_id for task in self.take(limit, free=free, lease=lease)]

    def take(
        self, limit: int, *, free: int = 100, lease: timedelta = factory.LEASE
    ) -> list[ClaimedTask]:
        return worker.claim_tasks(
            self.connection,
            self.worker,
            uuid4(),
            queues=["default"],
            limit=limit,
            free=free,
            lease=lease,
        )

    def abandon(self, limit: int = 1) -> None:
        """Claim with a lease that has expired, and let a supervisor take it back."""
        tasks = self.take(limit, lease=GONE)
        assert all(supervisor.reclaim_attempts(self.connection, [item(t) for t in tasks], poison=3))

    def node(self, run_id: str, name: str) -> tuple[Any, ...]:
        row = self.connection.execute(
            "select state, failures, abandoned, error->>'code' from smithers.nodes"
            " where run_id = %s and node_id = %s",
            [run_id, name],
        ).fetchone()
        assert row is not None
        return tuple(row)


@pytest.fixture
def shop(connection: Connection) -> Shop:
    return Shop(connection)


def test_a_wide_run_does_not_stand_before_the_first_task_of_another(shop: Shop) -> None:
    shop.ready("wide", [f"w{number:04}" for number in range(2000)])
    assert shop.claim(500)[-1] == "w0499"
    shop.ready("narrow", ["only"])
    assert "only" in shop.claim(2)


def test_tasks_of_one_run_come_in_the_order_of_the_plan(shop: Shop) -> None:
    shop.ready("r", ["c", "a", "b"])
    assert shop.claim(3) == ["c", "a", "b"]


def test_an_abandoned_task_goes_alone_and_into_a_free_slot_only(shop: Shop) -> None:
    shop.ready("r", ["a"])
    shop.abandon()
    shop.again("r", "a")
    shop.ready("other", ["x", "y"])
    assert shop.claim(10, free=0) == ["x", "y"]
    shop.ready("more", ["z"])
    assert shop.claim(10, free=1) == ["a"]
    assert shop.claim(10) == ["z"]


def test_the_third_abandoned_attempt_poisons_and_the_second_does_not(shop: Shop) -> None:
    shop.ready("r", ["a"])
    for number in (1, 2):
        shop.abandon()
        assert shop.node("r", "a") == ("pending", 0, number, None)
        shop.again("r", "a")
    shop.abandon()
    assert shop.node("r", "a") == ("failed", 0, 3, "POISONED")


def test_only_a_failure_uses_the_retry_budget(shop: Shop) -> None:
    shop.ready("r", ["released", "parked", "failed"])
    tasks = {task.node_id: task for task in shop.take(3)}
    later = "2999-01-01T00:00:00+00:00"
    ends = [
        item(tasks["released"], state="released", error={"code": "DRAINED", "message": ""}),
        item(tasks["parked"], state="parked", due_at=later, error={"code": "Q", "message": ""}),
        item(tasks["failed"], state="failed", retry_in=60, error={"code": "F", "message": ""}),
    ]
    assert worker.end_attempts(shop.connection, ends) == [True, True, True]
    assert shop.node("r", "released")[:3] == ("pending", 0, 0)
    assert shop.node("r", "parked")[:3] == ("waiting-quota", 0, 0)
    assert shop.node("r", "failed")[:3] == ("pending", 1, 0)


def test_a_queue_with_a_limit_gives_no_more_and_a_paused_one_nothing(shop: Shop) -> None:
    shop.ready("r", ["a", "b", "c"])
    shop.connection.execute(
        "insert into smithers.queues (name, max_concurrency) values ('default', 2)"
    )
    assert shop.claim(10) == ["a", "b"]
    assert shop.claim(10) == []
    shop.connection.execute("update smithers.queues set max_concurrency = 5, paused = true")
    assert shop.claim(10) == []
    shop.connection.execute("update smithers.queues set paused = false")
    assert shop.claim(10) == ["c"]


@pytest.mark.parametrize("stop", [operator.pause_run, operator.cancel_run])
def test_a_stop_waits_for_a_claim_under_way_and_lets_none_in_afterwards(
    shop: Shop, database: str, stop: Any
) -> None:
    shop.ready("r", ["a", "b"])
    answers: list[dict[str, Any]] = []
    with connect(database) as claiming, connect(database) as stopping:

        def ask() -> None:
            answers.append(stop(stopping, "r"))

        asking = threading.Thread(target=ask)
        with claiming.transaction():
            first = Shop.take(_on(shop, claiming), 1)
            asking.start()
            until(lambda: _blocked(shop.connection, stopping.info.backend_pid), seconds=10)
        asking.join()
    assert [task.node_id for task in first] == ["a"]
    assert answers[0]["in_flight"] == 1
    assert answers[0]["status"] == "running"
    assert shop.claim(10) == []
    ends = [item(first[0], state="released", error=None)]
    assert worker.end_attempts(shop.connection, ends) == [True]
    row = shop.connection.execute("select status from smithers.run_state").fetchone()
    assert row == ("paused" if stop is operator.pause_run else "cancelled",)


def _on(shop: Shop, connection: Connection) -> Shop:
    """The same shop seen through another connection."""
    other = Shop.__new__(Shop)
    other.__dict__.update(shop.__dict__, connection=connection)
    return other


def _blocked(connection: Connection, pid: int) -> bool:
    row = connection.execute("select cardinality(pg_blocking_pids(%s)) > 0", [pid]).fetchone()
    return row == (True,)


def test_a_process_that_was_declared_dead_claims_nothing(shop: Shop) -> None:
    from smithers.sql.errors import ProcessExpired
    from smithers.sql.processes import stop_process

    shop.ready("r", ["a"])
    stop_process(shop.connection, shop.worker)
    with pytest.raises(ProcessExpired):
        shop.claim(1)


def test_a_token_that_is_not_current_writes_nothing(shop: Shop) -> None:
    shop.ready("r", ["a", "b"])
    shape = {"name": "o", "shape": "0" * 64, "fields": []}
    scheduler.register_outputs(shop.connection, [shape])
    late, fine = shop.take(2)
    output = {"name": "o", "shape": "0" * 64, "output": {}}
    stale = item(late, claim_id=str(uuid4()))
    before = _rows(shop.connection, "a")
    assert worker.complete_attempts(shop.connection, [{**stale, **output}]) == [False]
    assert worker.end_attempts(shop.connection, [{**stale, "state": "failed"}]) == [False]
    assert worker.log_starts(shop.connection, [stale]) == 0
    (verdict,) = worker.heartbeat(shop.connection, shop.worker, [stale], factory.LEASE)
    assert verdict.verdict == "lost"
    assert _rows(shop.connection, "a") == before
    mixed = [{**stale, **output}, {**item(fine), **output}]
    assert worker.complete_attempts(shop.connection, mixed) == [False, True]
    assert _rows(shop.connection, "a") == before
    assert worker.complete_attempts(shop.connection, [{**item(fine), **output}]) == [False]
    assert worker.attempt_outcomes(shop.connection, [item(fine), item(late), stale]) == [
        "done",
        "mine",
        "lost",
    ]


def _rows(connection: Connection, name: str) -> list[Any]:
    return connection.execute(
        "select n.*, l.*, a.*, (select count(*) from smithers.events e where e.node_id = n.node_id)"
        " from smithers.nodes n left join smithers.leases l using (run_id, node_id, iteration)"
        " left join smithers.attempts a using (run_id, node_id, iteration) where n.node_id = %s",
        [name],
    ).fetchall()


def test_an_approval_and_a_denial_at_once_give_one_decision(shop: Shop, database: str) -> None:
    factory.make_run(shop.connection, "r")
    run = factory.take(shop.connection, shop.scheduler, "r")
    key = {"node_id": "gate", "iteration": 0}
    scheduler.commit_frame(
        shop.connection,
        factory.frame(
            shop.connection,
            run,
            shop.scheduler,
            mount=[{**key, "kind": "approval", "upstream": [], "descriptor_hash": None}],
            moves=[{**key, "from": "pending", "to": "waiting-approval"}],
            approvals=[{**key, "title": "go?"}],
            status="waiting-approval",
        ),
    )
    said: list[str] = []

    def decide(decision: str) -> None:
        from smithers.sql.errors import Refused

        asked = {"run_id": "r", "decision": decision, "by": decision, "request_id": decision}
        with connect(database) as connection:
            try:
                said.append(operator.decide_approval(connection, asked)["decision"])
            except Refused as refused:
                said.append(refused.code)

    threads = [threading.Thread(target=decide, args=[each]) for each in ("approved", "denied")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = next(each for each in said if each in ("approved", "denied"))
    assert sorted(said) == sorted([won, "APPROVAL_ALREADY_DECIDED"])
    again = {"run_id": "r", "decision": "denied", "by": "late", "request_id": won}
    assert operator.decide_approval(shop.connection, again)["decision"] == won
    row = shop.connection.execute(
        "select count(*) from smithers.events where type = 'approval-decided'"
    ).fetchone()
    assert row == (1,)
