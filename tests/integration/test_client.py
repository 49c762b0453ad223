"""`smithers.client` without a fleet: what is started, repeated, refused, cancelled, and lost."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel, Field

from smithers.client import (
    BadValue,
    BundleError,
    Client,
    ClientError,
    DatabaseUnavailable,
    OperationError,
    Refused,
    RenderError,
    Run,
    RunState,
    SettingsError,
    SmithersError,
    UnknownRun,
    WaitTimeout,
    waiting,
)
from smithers.sql.calls import Connection
from smithers.sql.embedded import Options, Place, ensure_running, stop_server
from smithers.sql.schema import migrate
from support.postgres import TestServer, create_database, throwaway_cluster
from support.proxy import Proxy
from support.runs import connect

WORKFLOW = """
from pydantic import BaseModel, Field
from smithers.workflow import Approval, Ctx, Node, Sequence, Task, WaitForEvent, workflow

class Order(BaseModel):
    number: int = Field(alias="order-number")
    note: str = "none"

@workflow(input=Order)
def order(ctx: Ctx[Order]) -> Node:
    return Sequence(Approval("gate"), WaitForEvent("go"))

@workflow(input=Order)
def other(ctx: Ctx[Order]) -> Node:
    return Sequence(Approval("gate"))
"""
ORDER = {"order-number": 1}


T = TypeVar("T")


class Order(BaseModel):
    number: int = Field(alias="order-number")


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "orders.py").write_text(WORKFLOW)
    return f"{tmp_path / 'orders.py'}:order"


@contextmanager
def client_of(dsn: str, folder: Path, **settings: Any) -> Generator[Client]:
    with Client(database_url=dsn, home=folder / ".smithers", **settings) as client:
        yield client


@pytest.fixture
def client(database: str, tmp_path: Path) -> Generator[Client]:
    with client_of(database, tmp_path) as made:
        yield made


def count(connection: Connection, what: str = "runs") -> int:
    row = connection.execute(f"select count(*) from smithers.{what}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def in_a_thread(act: Callable[[], T]) -> T:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result(timeout=60)


def code_of(act: Callable[[], object]) -> str:
    with pytest.raises(SmithersError) as caught:
        act()
    return caught.value.code


def test_a_run_is_started_from_the_main_thread_and_from_another(
    client: Client, file: str, connection: Connection
) -> None:
    first = client.start(file, ORDER, run_id="first", max_concurrency=2)
    second = in_a_thread(lambda: client.start(file, Order.model_validate(ORDER)))
    assert (first.id, first.created, second.created) == ("first", True, True)
    rows = connection.execute("select input, config from smithers.runs order by created_at")
    stored = {"number": 1, "note": "none"}
    assert rows.fetchall() == [(stored, {"max_concurrency": 2}), (stored, {})]
    assert second.status().status == RunState.RUNNING
    assert client.run("first").created is False


def test_wrong_files_and_inputs_are_refused_from_any_thread_and_nothing_is_written(
    client: Client, file: str, tmp_path: Path, connection: Connection
) -> None:
    client.start(file, ORDER, run_id="taken")
    (tmp_path / "raises.py").write_text("raise ValueError('deliberate')\n")
    loose: Any = {"order-number": object()}
    refusals: Mapping[str, tuple[type[SmithersError], Callable[[], Run]]] = {
        "INPUT_INVALID": (RenderError, lambda: client.start(file, {"order-number": "x"})),
        "INPUT_NOT_JSON": (OperationError, lambda: client.start(file, loose)),
        "VALUE_NOT_STORABLE": (BadValue, lambda: client.start(file, {"n": float("nan")})),
        "FILE_NOT_FOUND": (BundleError, lambda: client.start("nowhere.py")),
        "IMPORT_FAILED": (RenderError, lambda: client.start(tmp_path / "raises.py")),
        "WORKFLOW_AMBIGUOUS": (RenderError, lambda: client.start(tmp_path / "orders.py")),
        "RUN_ID_INVALID": (OperationError, lambda: client.start(file, ORDER, run_id="a/b")),
        "RUN_EXISTS": (Refused, lambda: client.start(file, ORDER, run_id="taken")),
        "MAX_CONCURRENCY_INVALID": (
            OperationError,
            lambda: client.start(file, ORDER, max_concurrency=0),
        ),
        "IDEMPOTENCY_KEY_INVALID": (
            OperationError,
            lambda: client.start(file, ORDER, idempotency_key=" "),
        ),
    }
    for code, (kind, act) in refusals.items():
        with pytest.raises(kind) as caught:
            in_a_thread(act)
        assert caught.value.code == code
    assert count(connection) == 1


def test_read_only_collections_and_models_inside_are_json_too(client: Client, file: str) -> None:
    run = client.start(file, MappingProxyType(ORDER))
    sent = run.signal("go", {"models": (Order.model_validate(ORDER),)})
    assert (sent.status, sent.repeated) == (RunState.RUNNING, False)


def test_the_same_key_gives_the_same_run_and_another_request_under_it_is_refused(
    client: Client, file: str, tmp_path: Path, connection: Connection
) -> None:
    first = client.start(file, ORDER, idempotency_key="order-1")
    # Other code of the file is the same request; so is the default, written out.
    (tmp_path / "orders.py").write_text(WORKFLOW + "\n# deployed anew\n")
    again = client.start(file, {**ORDER, "note": "none"}, idempotency_key="order-1")
    assert (again.id, again.created) == (first.id, False)
    others: list[Callable[[], Run]] = [
        lambda: client.start(file, {"order-number": 2}, idempotency_key="order-1"),
        lambda: client.start(file.replace(":order", ":other"), ORDER, idempotency_key="order-1"),
        lambda: client.start(file, ORDER, idempotency_key="order-1", run_id="mine"),
        lambda: client.start(file, ORDER, idempotency_key="order-1", max_concurrency=3),
    ]
    for act in others:
        with pytest.raises(OperationError) as caught:
            act()
        assert caught.value.code == "IDEMPOTENCY_KEY_REUSED"
        assert caught.value.details["run_id"] == first.id
    assert count(connection) == 1


def test_two_processes_with_one_key_make_one_run(
    database: str, file: str, tmp_path: Path, connection: Connection
) -> None:
    code = (
        "import sys; from smithers.client import Client\n"
        "with Client(database_url=sys.argv[1], home=sys.argv[2]) as client:\n"
        "    run = client.start(sys.argv[3], {'order-number': 1}, idempotency_key='order-1')\n"
        "    print(run.id, run.created)\n"
    )
    words = [sys.executable, "-c", code, database, str(tmp_path / ".smithers"), file]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0].split() for process in both]
    assert said[0][0] == said[1][0]
    assert sorted(each[1] for each in said) == ["False", "True"]
    assert count(connection) == 1


def test_a_decision_is_stored_once_for_its_key(client: Client, file: str) -> None:
    run = client.start(file, ORDER)
    first = run.signal("go", {"a": 1}, idempotency_key="s")
    again = run.signal("go", {"a": 1}, idempotency_key="s")
    assert (first.repeated, again.repeated, again.seq) == (False, True, first.seq)
    assert code_of(lambda: run.signal("stop", idempotency_key="s")) == "IDEMPOTENCY_KEY_REUSED"
    assert code_of(lambda: run.signal(" ")) == "SIGNAL_NAME_INVALID"
    assert code_of(run.approve) == "APPROVAL_UNKNOWN"
    assert [event.type for event in run.events()] == ["run-created", "signal-received"]
    assert [event.seq for event in run.events(since=1, limit=1)] == [2]


def test_an_unknown_run_is_unknown(client: Client) -> None:
    for run_id in ("nowhere", "no/run", "\udcff"):
        with pytest.raises(UnknownRun):
            client.run(run_id)


def test_waiting_ends_after_its_timeout_and_leaves_the_run_alone(client: Client, file: str) -> None:
    run = client.start(file, ORDER)
    with pytest.raises(WaitTimeout) as caught:
        run.wait(timeout=0.1)
    assert caught.value.code == "WAIT_TIMEOUT"
    assert caught.value.details["status"] == "running"
    assert list(run.follow(since=1, timeout=0.0)) == []
    assert run.status().status == RunState.RUNNING


def test_a_waiter_sees_the_end_soon(client: Client, file: str) -> None:
    run = client.start(file, ORDER)
    with ThreadPoolExecutor(2) as pool:
        waiter = pool.submit(lambda: (run.wait(timeout=30).status, time.monotonic()))
        follower = pool.submit(lambda: [event.type for event in run.follow(timeout=30)])
        with pytest.raises(WaitTimeout):
            run.wait(timeout=1.0)  # by now they look as seldom as they ever do
        ended_at = time.monotonic()
        assert run.cancel() == RunState.CANCELLED
        status, seen_at = waiter.result()
    assert status == RunState.CANCELLED
    assert seen_at - ended_at < 1.0
    assert follower.result()[-1] == "run-status"
    assert code_of(run.cancel) == "RUN_ALREADY_ENDED"
    assert run.resume().resumed
    assert run.pause() == RunState.PAUSED
    assert run.wait(timeout=5, until="parked").status == RunState.PAUSED


def test_looks_become_rarer_but_never_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    clock = SimpleNamespace(sleep=pauses.append, monotonic=lambda: sum(pauses))
    monkeypatch.setattr(waiting, "time", clock)
    pace = waiting._Pace(10.0)
    while pace.sleep():
        pass
    assert pauses[0] <= 0.02
    assert max(pauses) == 0.25
    assert len(pauses) < 50
    assert sum(pauses) == pytest.approx(10.0)


def test_runs_are_listed_by_state(client: Client, file: str) -> None:
    ids = [client.start(file, ORDER, run_id=f"r{number}").id for number in range(3)]
    client.run("r0").cancel()
    client.run("r1").pause()
    assert [each.run_id for each in client.runs()] == ids[::-1]
    assert [each.run_id for each in client.runs(limit=1)] == ["r2"]
    assert [each.run_id for each in client.runs(status=RunState.CANCELLED, limit=1)] == ["r0"]
    both = client.runs(status=[RunState.PAUSED, RunState.RUNNING], limit=None)
    assert [(each.run_id, each.status) for each in both] == [("r2", "running"), ("r1", "paused")]
    assert client.runs(status=RunState.FAILED) == []


def test_eight_threads_use_one_client_with_two_connections(
    database: str, file: str, tmp_path: Path, connection: Connection
) -> None:
    mine = "select count(*) from pg_stat_activity where application_name = 'smithers client'"

    def use(client: Client, number: int) -> str:
        run = client.start(file, {"order-number": number}, run_id=f"r{number}")
        for _ in range(10):
            run.signal("go", number)
            assert len(run.status().nodes) == 0
        return run.cancel()

    with client_of(database, tmp_path, max_connections=2) as client, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(partial(use, client), range(8))) == [RunState.CANCELLED] * 8
        assert connection.execute(mine).fetchone() in [(1,), (2,)]
    assert count(connection) == 8
    assert count(connection, "signals") == 80


def test_a_client_that_has_no_connection_left_says_so(database: str, tmp_path: Path) -> None:
    with client_of(database, tmp_path, max_connections=1, connect_timeout=0.05) as client:
        with client._connections.lend():
            assert code_of(client.runs) == "CONNECTIONS_BUSY"
        assert client.runs() == []
    with pytest.raises(ClientError) as caught:
        client.runs()
    assert caught.value.code == "CLIENT_CLOSED"


def test_a_wrong_setting_is_refused_at_once() -> None:
    with pytest.raises(SettingsError):
        Client(database_url="mysql://nowhere")


def test_connections_that_died_between_calls_are_replaced(
    client: Client, file: str, connection: Connection
) -> None:
    run = client.start(file, ORDER)
    connection.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where application_name = 'smithers client'"
    )
    assert run.cancel() == RunState.CANCELLED


def test_a_lost_database_is_told_and_the_next_call_works(
    database: str, file: str, tmp_path: Path
) -> None:
    proxy = Proxy(database)
    try:
        with client_of(proxy.dsn, tmp_path, connect_timeout=0.2) as client:
            run = client.start(file, ORDER)
            proxy.cut()
            with pytest.raises(DatabaseUnavailable):
                run.status()
            with pytest.raises(DatabaseUnavailable):
                run.wait(timeout=60)
            proxy.restore()
            assert run.status().status == RunState.RUNNING
    finally:
        proxy.close()


def test_an_answer_that_got_lost_is_asked_for_again(
    database: str, file: str, tmp_path: Path, connection: Connection
) -> None:
    proxy = Proxy(database)
    try:
        with client_of(proxy.dsn, tmp_path) as client:
            client.runs()
            proxy.lose_answer_to(b"COMMIT")
            run = client.start(file, ORDER)
            assert proxy.lost.is_set()
            proxy.lose_answer_to(b"send_signal")
            receipt = run.signal("go")
            assert proxy.lost.is_set()
            assert receipt.repeated
    finally:
        proxy.close()
    assert (count(connection), count(connection, "signals")) == (1, 1)


@pytest.mark.slow
def test_a_database_restarted_between_calls_and_while_somebody_waits(
    file: str, tmp_path: Path
) -> None:
    with throwaway_cluster(fsync="on", synchronous_commit="on") as home:
        server = TestServer(Place(home).dsn("postgres"), "throwaway")
        create_database(server, "restarted", None)
        dsn = server.url("restarted")
        with connect(dsn) as connection:
            migrate(connection)
        with client_of(dsn, tmp_path) as client, ThreadPoolExecutor(1) as pool:
            run = client.start(file, ORDER)
            waiter = pool.submit(run.wait, 60)
            stop_server(home)
            ensure_running(home, Options(durable=True, die_with_parent=True))
            assert run.status().status == RunState.RUNNING
            run.cancel()
            assert waiter.result().status == RunState.CANCELLED


def test_a_client_made_and_used_before_a_fork_works_in_both_processes(
    database: str, file: str, tmp_path: Path
) -> None:
    code = (
        "import os, sys, threading; from smithers.client import Client\n"
        "client = Client(database_url=sys.argv[1], home=sys.argv[2])\n"
        "run = client.start(sys.argv[3], {'order-number': 1}, run_id='parent')\n"
        "client._connections._lock.acquire()\n"  # another thread is in the middle of a call
        "child = os.fork()\n"
        "if child == 0:\n"
        "    run.signal('go')\n"
        "    client.close()\n"
        "    sys.exit(0)\n"
        "client._connections._lock.release()\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "assert len(client._connections._idle) == 1\n"
        "before = client._connections._idle[0].session.connection\n"
        "assert [each.run_id for each in client.runs()] == ['parent']\n"
        "assert client._connections._idle[0].session.connection is before\n"
    )
    words = [sys.executable, "-c", code, database, str(tmp_path / ".smithers"), file]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_nothing_is_left_of_the_threads_and_children_of_a_start(client: Client, file: str) -> None:
    client.start(file, ORDER)
    before = threading.active_count()
    in_a_thread(lambda: client.start(file, ORDER))
    assert threading.active_count() == before
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
    alive = [pid for pid in children if b"render_host" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert alive == []
