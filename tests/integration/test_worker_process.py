"""Worker processes: what becomes of attempts when workers, runs and the database misbehave."""

from __future__ import annotations

import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from smithers.process.procfs import process
from smithers.sql import operator
from support.families import descendants
from support.proxy import Proxy
from support.waiting import until
from support.worker_bench import WorkerBench, alive

pytestmark = pytest.mark.slow


@pytest.fixture
def bench(database: str, tmp_path: Path) -> Generator[WorkerBench]:
    bench = WorkerBench(database, tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def proxy(database: str) -> Generator[Proxy]:
    proxy = Proxy(database)
    yield proxy
    proxy.close()


def started(mark: Path) -> int:
    """The pid of the executor whose body has written its mark."""
    return int(until(lambda: mark.exists() and mark.read_text()))


def test_tasks_are_claimed_run_and_stored(bench: WorkerBench) -> None:
    bench.ready("r", "say", count=20, text="a\0\ud800")
    bench.start("--slots", "3")
    until(lambda: bench.states("r") == {"finished"})
    assert bench.outputs("r") == 20
    assert bench.leases() == 0
    types = bench.conn.execute(
        "select type, count(*) from smithers.events where run_id = 'r' group by type"
    ).fetchall()
    assert dict(types)["attempt-started"] == dict(types)["attempt-finished"] == 20


def test_only_its_own_queues(bench: WorkerBench) -> None:
    bench.ready("other", "say", queue="gpu")
    bench.ready("mine", "say", queue="cpu")
    bench.start("--queues", "cpu,default")
    until(lambda: bench.states("mine") == {"finished"})
    assert bench.states("other") == {"ready"}


def test_a_failure_is_retried_later_and_a_missing_import_is_given_back(bench: WorkerBench) -> None:
    bench.ready("fails", "say", nonsense=1, retries=1)
    bench.ready("missing", "needs_numpy_twice")
    bench.start()
    until(lambda: bench.attempts("fails") == [("n0", 1, "failed")])
    until(lambda: bench.attempts("missing") == [("n0", 1, "released")])
    rows = bench.conn.execute(
        "select run_id, state, failures, due_at is not null from smithers.nodes order by run_id"
    ).fetchall()
    assert rows == [("fails", "pending", 1, True), ("missing", "pending", 0, True)]


def test_a_long_attempt_is_logged_as_started_and_keeps_its_lease(
    bench: WorkerBench, tmp_path: Path
) -> None:
    bench.ready("r", "wait_for", path=str(tmp_path / "go"))
    bench.start()
    query = "select count(*) from smithers.events where type = 'attempt-started'"
    until(lambda: bench.conn.execute(query).fetchone() == (1,))
    first = bench.conn.execute("select lease_until from smithers.leases").fetchone()
    until(lambda: bench.conn.execute("select lease_until from smithers.leases").fetchone() != first)
    (tmp_path / "go").touch()
    until(lambda: bench.states("r") == {"finished"})
    assert bench.conn.execute(query).fetchone() == (1,)


def test_a_cancelled_run_ends_its_bodies(bench: WorkerBench, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    bench.ready("r", "stay_with_family", mark=str(mark))
    bench.start()
    executor = started(mark)
    family = [executor, *descendants(executor)]
    assert len(family) >= 3
    operator.cancel_run(bench.conn, "r")
    until(lambda: bench.attempts("r") == [("n0", 1, "cancelled")])
    until(lambda: not any(alive(pid) for pid in family))


def test_a_killed_workers_children_die_with_it_or_by_the_next_one(
    bench: WorkerBench, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    bench.ready("r", "stay_with_family", mark=str(mark), path=str(tmp_path / "go"))
    first = bench.start()
    executor = started(mark)
    family = descendants(first.pid)
    first.kill()
    until(lambda: not alive(executor))
    until(bench.reclaim)
    assert any(alive(pid) for pid in family)
    mark.unlink()
    second = bench.start()
    until(lambda: not any(alive(pid) for pid in family))
    until(lambda: "orphans-killed" in bench.log(second))


def test_sigterm_waits_for_bodies_and_gives_back_what_has_not_begun(
    bench: WorkerBench, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    bench.ready("running", "wait_for", path=str(tmp_path / "go"), mark=str(mark))
    worker = bench.start("--slots", "1")
    started(mark)
    worker.send(signal.SIGTERM)
    until(lambda: "draining" in bench.log(worker))
    bench.ready("later", "say")
    (tmp_path / "go").touch()
    assert worker.process.wait(30) == 0
    assert bench.states("running") == {"finished"}
    assert bench.states("later") == {"ready"}
    assert bench.leases() == 0
    stopped = bench.conn.execute(
        "select stopped_at is not null from smithers.processes where kind = 'worker'"
    ).fetchone()
    assert stopped == (True,)


@pytest.mark.parametrize("words", [("--grace", "0.5"), ("--grace", "3600")])
def test_what_outlasts_the_grace_or_a_second_signal_is_released(
    bench: WorkerBench, tmp_path: Path, words: tuple[str, ...]
) -> None:
    mark = tmp_path / "mark"
    bench.ready("r", "stay_with_family", mark=str(mark))
    worker = bench.start(*words)
    started(mark)
    family = descendants(worker.pid)
    worker.send(signal.SIGTERM)
    until(lambda: "draining" in bench.log(worker))
    if words[1] == "3600":
        worker.send(signal.SIGTERM)
    assert worker.process.wait(30) == 0
    assert bench.attempts("r") == [("n0", 1, "released")]
    assert not any(alive(pid) for pid in family)


def test_a_worker_that_was_stopped_for_two_leases_writes_nothing_and_its_children_die(
    bench: WorkerBench, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    bench.ready("r", "stay_with_family", mark=str(mark), path=str(tmp_path / "go"))
    worker = bench.start("--name", "zombie")
    started(mark)
    family = descendants(worker.pid)
    worker.send(signal.SIGSTOP)
    (tmp_path / "go").touch()  # its body returns meanwhile
    until(bench.reclaim)
    mark.unlink()
    other = bench.start()
    until(lambda: bench.states("r") == {"pending"})
    worker.send(signal.SIGCONT)
    until(lambda: not any(alive(pid) for pid in family), seconds=10)
    assert bench.attempts("r") == [("n0", 1, "abandoned")]
    assert bench.outputs("r") == 0
    assert worker.alive()
    assert other.alive()
    bench.ready("after", "say", count=8)
    until(lambda: bench.states("after") == {"finished"})


def test_a_worker_that_was_declared_dead_begins_anew(bench: WorkerBench, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    bench.ready("r", "stay_with_family", mark=str(mark))
    worker = bench.start()
    started(mark)
    family = descendants(worker.pid)
    bench.conn.execute("update smithers.processes set stopped_at = now() where kind = 'worker'")
    until(lambda: not any(alive(pid) for pid in family))
    until(lambda: "registered-anew" in bench.log(worker))
    assert bench.attempts("r") == [("n0", 1, "in-progress")]
    bench.ready("after", "say")
    until(lambda: bench.states("after") == {"finished"})


def test_a_silent_database_suspends_bodies_and_loses_none(
    bench: WorkerBench, proxy: Proxy, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    bench.ready("r", "stay_with_family", mark=str(mark), path=str(tmp_path / "go"))
    worker = bench.start(dsn=proxy.dsn)
    started(mark)
    family = descendants(worker.pid)
    proxy.silence()
    until(lambda: all((p := process(pid)) is not None and p.stopped for pid in family))
    # Three leases in all: nobody reclaims, since no supervisor sees the database either.
    since = "select now() - heartbeat_at > interval '6 seconds' from smithers.leases"
    until(lambda: bench.conn.execute(since).fetchone() == (True,))
    assert all(alive(pid) for pid in family)
    proxy.restore()
    until(lambda: not any((p := process(pid)) is not None and p.stopped for pid in family))
    (tmp_path / "go").touch()
    until(lambda: bench.attempts("r") == [("n0", 1, "finished")])
    assert "attempt-suspended" in bench.log(worker)
    assert "attempt-resumed" in bench.log(worker)


def test_results_wait_for_a_database_that_is_away(
    bench: WorkerBench, proxy: Proxy, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    bench.ready("r", "wait_for", path=str(tmp_path / "go"), mark=str(mark))
    worker = bench.start(dsn=proxy.dsn)
    started(mark)
    proxy.cut()
    (tmp_path / "go").touch()
    until(lambda: "database-away" in bench.log(worker))
    assert bench.attempts("r") == [("n0", 1, "in-progress")]
    proxy.restore()
    until(lambda: bench.attempts("r") == [("n0", 1, "finished")])
    assert bench.log(worker).count("database-away") == 1, bench.log(worker)
    assert bench.log(worker).count("database-back") == 1


@pytest.mark.parametrize("words", [b"complete_attempts", b"claim_tasks", b"heartbeat"])
def test_a_lost_answer_is_settled_by_asking(bench: WorkerBench, proxy: Proxy, words: bytes) -> None:
    worker = bench.start(dsn=proxy.dsn)
    until(lambda: "started" in bench.log(worker))
    proxy.lose_answer_to(words)
    bench.ready("r", "say", count=6)
    until(lambda: bench.states("r") == {"finished"})
    if words != b"heartbeat":
        assert proxy.lost.is_set()
    assert [state for _, _, state in bench.attempts("r")] == ["finished"] * 6
    assert "attempt-fenced" not in bench.log(worker)


def test_a_worker_drains_though_the_database_is_silent(
    bench: WorkerBench, proxy: Proxy, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    bench.ready("r", "stay_with_family", mark=str(mark))
    worker = bench.start("--grace", "0.1", dsn=proxy.dsn)
    started(mark)
    family = descendants(worker.pid)
    proxy.silence()
    worker.send(signal.SIGTERM)
    assert worker.process.wait(60) == 0
    assert not any(alive(pid) for pid in family)
    assert "attempt-left-behind" in bench.log(worker)
