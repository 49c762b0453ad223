"""What smithers.testing says of a workflow is what real processes make of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from smithers.sql import operator
from smithers.sql.calls import Connection
from smithers.sql.scheduler import load_run
from smithers.testing import TestRun, run_workflow
from smithers.workflow import Workflow
from smithers.workflow.snapshot import Snapshot
from support import workflow_agreeing
from support.fleet import fleet
from support.postgres import TestServer, database_on
from support.runs import ENDED, connect, node, signal, start_run, status
from support.waiting import until
from support.workflow_agreeing import Draft, Review

CHOICE = {"colour": "red", "tags": ["b", "a"]}
DECISIONS = {"gate": True, "veto": False, "no": True}
pytestmark = pytest.mark.slow
SIGNALS = {"go": CHOICE, "plain": [1], "word": {"bb": 1, "a": {"payload": None}}}


NAMES = ["looping", "parting", "asking", "flaky", "denied", "hearing"]


def played(name: str, run_input: Mapping[str, object]) -> TestRun:
    """Run one of the workflows in this process."""
    workflow: Workflow = getattr(workflow_agreeing, name)
    given: dict[str, Any] = {}
    if name == "flaky":
        (Path(str(run_input["folder"])) / "calls").unlink()
    if name == "parting":  # the bodies wait for each other
        bodies = {"odd": Review(passed=True, tries=0), "fine": Draft(text="yes")}
        given = {"tasks": bodies}
    if name in ("asking", "hearing"):
        given = {"approve": DECISIONS, "humans": {"colour": CHOICE}, "signals": SIGNALS}
    if name == "denied":
        given = {"approve": False}
    return run_workflow(workflow, run_input, run_id=name, **given)


@pytest.fixture(scope="module")
def real(
    server: TestServer, template: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Snapshot]:
    """The rows of a run of each workflow by real processes."""
    folder = tmp_path_factory.mktemp("there")
    with (
        database_on(server, template) as database,
        connect(server.url(database)) as connection,
        fleet(server.url(database), folder, ["scheduler", "worker"], lease=6.0),
    ):
        begin(connection, folder)

        def ended() -> bool:
            say_all(connection)
            if node(connection, "parting", "odd").get("state") == "failed":
                (folder / "go").touch()
            return all(status(connection, name) in ENDED for name in NAMES)

        until(ended, seconds=60, pause=0.05)
        loaded = {name: load_run(connection, name) for name in NAMES}
        return {name: Snapshot.from_json({**each, "frames": []}) for name, each in loaded.items()}


@pytest.mark.parametrize("name", NAMES)
def test_both_end_alike(name: str, real: dict[str, Snapshot]) -> None:
    ours = played(name, real[name].run.input)
    assert facts(ours._store.snapshot()) == facts(real[name]), ours.explain()


def begin(connection: Connection, folder: Path) -> None:
    """Start a run of each workflow, and send the signals."""
    home = Path(workflow_agreeing.__file__).parent
    for name in NAMES:
        given = {"folder": str(folder)} if name in ("flaky", "parting") else {}
        start_run(connection, "workflow_agreeing", given, run_id=name, workflow=name, folder=home)
        if name in ("asking", "hearing"):
            for word, payload in SIGNALS.items():
                signal(connection, name, word, payload)


def say_all(connection: Connection) -> None:
    """Decide and answer whatever is open."""
    for run_id, node_id, iteration in connection.execute(
        "select run_id, node_id, iteration from smithers.approvals"
        " where decided_seq is null and not superseded"
    ).fetchall():
        approved = run_id != "denied" and DECISIONS[node_id]
        decision = "approved" if approved else "denied"
        operator.decide_approval(
            connection, said(run_id, node_id, iteration, decision=decision, note=None)
        )
    for run_id, node_id, iteration in connection.execute(
        "select run_id, node_id, iteration from smithers.human_requests"
        " where decided_seq is null and not superseded"
    ).fetchall():
        operator.answer_human(connection, said(run_id, node_id, iteration, response=CHOICE))


def said(run_id: str, node_id: str, iteration: int, **more: Any) -> dict[str, Any]:
    key = {"run_id": run_id, "node_id": node_id, "iteration": iteration}
    return {**key, "by": "test", "request_id": uuid4().hex, **more}


def facts(snapshot: Snapshot) -> dict[str, object]:
    """Give what both must agree on: all but moments, messages and sequence numbers."""
    run = snapshot.run
    return {
        "status": run.status,
        "error": code(run.error),
        "nodes": {
            row.key: (
                row.state,
                row.kind,
                row.last_attempt,
                row.failures,
                row.descriptor_hash,
                code(row.error),
                row.detail,
            )
            for row in snapshot.nodes
        },
        "outputs": {key: exact(fields) for key, fields in snapshot.outputs.items()},
        "approvals": snapshot.approvals,
        "humans": {key: exact(row) for key, row in snapshot.humans.items()},
        "events": {key: exact(payload) for key, payload in snapshot.events.items()},
        "signals": [(row.name, exact(row.payload)) for row in snapshot.signals],
        "timers": {key: row.fired for key, row in snapshot.timers.items()},
    }


def code(error: Mapping[str, object] | None) -> object:
    return error and error["code"]


def exact(value: object) -> str:
    """Give a value with its types and the order of its keys, but for the order of columns."""
    top = dict(sorted(value.items())) if isinstance(value, dict) else value
    return repr(top)
