"""`smithers.client` with a fleet, with an engine, and as docs/client.md and the example use it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from smithers.client import Client, OperationError, ReadError, RunState, Verdict
from smithers.operations.verifying import verify
from smithers.sql.embedded import stop_server
from smithers.workflow import Decision
from support import postgres
from support.fleet import Fleet, dead, fleet, processes_marked
from support.postgres import TestServer
from support.runs import connect
from support.waiting import until

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "client_service.py"
PAGE = (ROOT / "docs" / "client.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
QUESTION = """
from pydantic import BaseModel
from smithers.workflow import Ctx, HumanTask, Node, NoInput, Task, workflow

class Mood(BaseModel):
    mood: str

@workflow()
def ask(ctx: Ctx[NoInput]) -> Node:
    return HumanTask("mood", Mood, prompt="How are you?")
"""


class Price(BaseModel):
    cents: int


class Mood(BaseModel):
    mood: str


@pytest.fixture(scope="module")
def served(
    server: TestServer, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Fleet]:
    """A fleet for all the tests here, in a folder with the workflow of the page."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "orders.py").write_text(BLOCKS[0])
    (folder / "ask.py").write_text(QUESTION)
    with (
        postgres.database_on(server, template) as name,
        fleet(server.url(name), folder, ["scheduler", "worker"], lease=4.0) as whole,
    ):
        yield whole
        with connect(whole.dsn) as connection:
            assert verify(connection) == []


@pytest.fixture
def client(served: Fleet) -> Generator[Client]:
    with Client(database_url=served.dsn, home=served.folder / ".smithers") as made:
        yield made


@contextmanager
def running(served: Fleet, *words: str) -> Generator[subprocess.Popen[str]]:
    """A program in the fleet's folder."""
    process = subprocess.Popen(
        [sys.executable, *words],
        env=served.environment(),
        cwd=served.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(url: str, body: str | None = None, **headers: str) -> tuple[int, Any]:
    """Give status and document of an answer."""
    data = None if body is None else body.encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, named), timeout=30) as found:
            return found.status, json.load(found)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_every_block_of_the_page_is_run_here() -> None:
    assert PAGE.count("```") == 2 * len(BLOCKS) == 6
    assert len(PAGE.splitlines()) <= 100


@pytest.mark.slow
def test_a_run_is_started_decided_and_read_by_threads(client: Client, served: Fleet) -> None:
    def use(number: int) -> int:
        run = client.start(served.folder / "orders.py", {"item": "lamp", "count": number})
        seen = run.wait(timeout=60, until="parked")
        assert (seen.status, seen.verdict) == (RunState.WAITING_APPROVAL, Verdict.WAITING)
        assert run.why().reasons[0].node_id == "ship"
        receipt = run.approve("ship", by="ann", note="fine", idempotency_key="k")
        assert (receipt.node_id, receipt.iteration, receipt.repeated) == ("ship", 0, False)
        assert run.approve("ship", by="ann", idempotency_key="k").repeated
        with pytest.raises(OperationError) as refused:
            run.deny("ship", idempotency_key="k")
        assert refused.value.code == "IDEMPOTENCY_KEY_REUSED"
        assert run.wait(timeout=60).status == RunState.FINISHED
        decision = run.output("ship", model=Decision)
        assert decision == Decision(approved=True, note="fine", decided_by="ann")
        assert run.output("price") == {"cents": 400 * number}
        assert [each.node_id for each in run.outputs()] == ["price", "ship"]
        assert [event.seq for event in run.follow()] == [event.seq for event in run.events()]
        return run.output("price", model=Price).cents

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(use, [1, 2, 3])) == [400, 800, 1200]


def test_an_output_that_does_not_fit_or_is_not_there(client: Client, served: Fleet) -> None:
    run = client.start(served.folder / "orders.py", {"item": "lamp"})
    run.wait(timeout=60, until="parked")
    with pytest.raises(ReadError) as unfit:
        run.output("price", model=Mood)
    assert unfit.value.code == "OUTPUT_MISMATCH"
    assert "mood: Field required" in unfit.value.message
    codes = []
    for node in ("ship", "nowhere"):
        with pytest.raises(OperationError) as missing:
            run.output(node)
        codes.append(missing.value.code)
    assert codes == ["OUTPUT_MISSING", "NODE_UNKNOWN"]
    assert run.deny().status == RunState.RUNNING
    assert run.wait(timeout=60).status == RunState.FAILED


def test_a_question_is_answered_with_a_model(client: Client, served: Fleet) -> None:
    run = client.start(served.folder / "ask.py")
    run.wait(timeout=60, until="parked")
    with pytest.raises(OperationError) as refused:
        run.answer("mood", {"mood": 1})
    assert refused.value.code == "ANSWER_INVALID"
    run.answer("mood", Mood(mood="good"), by="ann", idempotency_key="a")
    assert run.answer(None, Mood(mood="good"), idempotency_key="a").repeated
    assert run.wait(timeout=60).status == RunState.FINISHED
    assert run.output("mood", model=Mood) == Mood(mood="good")


def test_the_program_of_the_page(served: Fleet) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[1]],
        env={**served.environment(), "PYTHONPATH": str(served.folder)},
        cwd=served.folder,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, cents, last = done.stdout.splitlines()
    assert first.startswith("waiting-approval [")
    assert (cents, last) == ("800", "finished")


def test_the_service_of_the_page(served: Fleet) -> None:
    (served.folder / "service.py").write_text(BLOCKS[2])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    with running(served, "service.py", str(port)):
        until(listens, seconds=30)
        made = ask(url, '{"item": "cup"}', Idempotency_Key="cup-1")
        assert made[0] == 200
        assert ask(url, '{"item": "cup"}', Idempotency_Key="cup-1") == made
        refused = ask(url, '{"item": "mug"}', Idempotency_Key="cup-1")
        assert (refused[0], refused[1]["code"]) == (400, "IDEMPOTENCY_KEY_REUSED")
        until(lambda: ask(f"{url}/{made[1]}") == (200, "waiting-approval"), seconds=60)
        assert ask(f"{url}/nowhere")[0] == 404


def test_the_example(served: Fleet) -> None:
    with running(served, str(EXAMPLE), "orders.py", "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        status, made = ask(f"{url}/runs", '{"item": "pen"}', Idempotency_Key="pen-1")
        assert status == 201
        assert ask(f"{url}/runs", '{"item": "pen"}', Idempotency_Key="pen-1") == (200, made)
        page = f"{url}/runs/{made['id']}"
        until(lambda: ask(page)[1]["status"] == "waiting-approval", seconds=60)
        assert ask(page)[1]["outputs"] == {"price": {"cents": 300}}
        assert ask(f"{page}/approve", "", From="ann")[0] == 200
        until(lambda: ask(page)[1]["status"] == "finished", seconds=60)
        assert ask(page)[1]["outputs"]["ship"]["decided_by"] == "ann"
        assert ask(f"{page}/approve", "")[0] == 409
        assert ask(f"{url}/runs/nowhere")[0] == 404
        assert ask(f"{url}/runs", "{")[0] == 400
        assert ask(f"{url}/runs", "{}")[1]["code"] == "INPUT_INVALID"


def test_an_engine_is_started_for_a_server_of_ones_own_when_it_is_asked_for(
    database: str, tmp_path: Path
) -> None:
    (tmp_path / "orders.py").write_text(BLOCKS[0])
    home = tmp_path / ".smithers"
    with Client(database_url=database, home=home) as client:
        idle = client.start(tmp_path / "orders.py", {"item": "cup"}, run_id="idle")
        assert processes_marked(f"SMITHERS_HOME={home}") == []
        run = client.start(tmp_path / "orders.py", {"item": "lamp"}, engine=True)
        for each in (idle, run):
            assert each.wait(timeout=60, until="parked").status == RunState.WAITING_APPROVAL
    until(lambda: not processes_marked(f"SMITHERS_HOME={home}"), seconds=30)


@pytest.mark.slow
def test_an_engine_goes_on_with_runs_of_an_embedded_database(tmp_path: Path) -> None:
    home = tmp_path / ".smithers"
    (tmp_path / "orders.py").write_text(BLOCKS[0])
    try:
        with Client(home=home) as client, ThreadPoolExecutor(1) as pool:
            run = pool.submit(client.start, tmp_path / "orders.py", {"item": "lamp"}).result()
            pool.shutdown()  # the thread that started the engine ends
            run.wait(timeout=60, until="parked")
            engines = [int(pid) for pid in processes_marked(f"SMITHERS_HOME={home}")]
            assert engines
            until(lambda: dead(engines), seconds=30)
            # It was our child: nothing of it is left, not even a zombie.
            until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in engines))
            run.approve()
            assert run.wait(timeout=60).status == RunState.FINISHED
            until(lambda: not processes_marked(f"SMITHERS_HOME={home}"), seconds=30)
            quiet = client.start(tmp_path / "orders.py", {"item": "lamp"}, engine=False)
            assert processes_marked(f"SMITHERS_HOME={home}") == []
            quiet.cancel()
    finally:
        stop_server(home)
