"""Wrong input: exit 4, one clear line with a code, no traceback, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smithers.cli.main import run
from smithers.sql.calls import Connection
from support.runs import WORKFLOWS, start_run

BAD = str(WORKFLOWS / "bad_tasks.py")


@pytest.fixture(autouse=True)
def _home(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMITHERS_DATABASE_URL", database)
    monkeypatch.setenv("SMITHERS_HOME", str(tmp_path / ".smithers"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.py").write_text(
        "from smithers.workflow import Node, Sequence, workflow\n"
        "@workflow()\ndef one(ctx) -> Node: return Sequence()\n"
        "@workflow()\ndef other(ctx) -> Node: return Sequence()\n"
    )
    (tmp_path / "broken.py").write_text("def nothing(:\n")
    (tmp_path / "raises.py").write_text("raise ValueError('deliberate')\n")
    (tmp_path / "exits.py").write_text("import os\nos._exit(3)\n")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "imports.py").write_text("import no_such_module_anywhere\n")


def rows(connection: Connection) -> int:
    row = connection.execute(
        "select (select count(*) from smithers.runs) + (select count(*) from smithers.events)"
    ).fetchone()
    assert row is not None
    return int(row[0])


REFUSALS = {
    "unknown run, status": (["status", "nowhere"], "RUN_UNKNOWN"),
    "unknown run, why": (["why", "nowhere"], "RUN_UNKNOWN"),
    "unknown run, output": (["output", "nowhere"], "RUN_UNKNOWN"),
    "unknown run, events": (["events", "nowhere"], "RUN_UNKNOWN"),
    "unknown run, pause": (["pause", "nowhere"], "RUN_UNKNOWN"),
    "unknown run, cancel": (["cancel", "nowhere"], "RUN_UNKNOWN"),
    "unknown run, resume": (["resume", "nowhere"], "RUN_UNKNOWN"),
    "unknown run, approve": (["approve", "nowhere"], "RUN_UNKNOWN"),
    "unknown run, deny": (["deny", "nowhere"], "RUN_UNKNOWN"),
    "unknown run, signal": (["signal", "nowhere", "go"], "RUN_UNKNOWN"),
    "unknown run, verify": (["verify", "nowhere"], "RUN_UNKNOWN"),
    "no approval is open": (["approve", "there"], "APPROVAL_UNKNOWN"),
    "no such node": (["approve", "there", "--node", "nope"], "APPROVAL_UNKNOWN"),
    "signal data is no JSON": (["signal", "there", "go", "--data", "{"], "JSON"),
    "missing file": (["up", "nowhere.py"], "FILE_NOT_FOUND"),
    "a folder": (["up", "."], "FILE"),
    "syntax error": (["up", "broken.py"], "SYNTAX"),
    "raises on import": (["up", "raises.py"], "IMPORT_FAILED"),
    "exits on import": (["up", "exits.py"], ""),
    "missing module": (["up", "imports.py"], ""),
    "no workflow": (["up", "empty.py"], "WORKFLOW_NOT_FOUND"),
    "two workflows": (["up", "two.py"], "WORKFLOW_AMBIGUOUS"),
    "no such workflow": (["up", "two.py:third"], "WORKFLOW_NOT_FOUND"),
    "input is no JSON": (["up", BAD, "--input", "{"], "JSON"),
    "input file is missing": (["up", BAD, "--input", "@nowhere.json"], ""),
    "input misses a field": (["up", BAD, "--input", "{}"], "INPUT_INVALID"),
    "input has a wrong type": (["up", BAD, "--input", '{"fault": 1}'], "INPUT_INVALID"),
    "run id with a slash": (
        ["up", BAD, "--input", '{"fault": "none"}', "--run-id", "a/b"],
        "RUN_ID_INVALID",
    ),
    "run id is taken": (
        ["up", BAD, "--input", '{"fault": "none"}', "--run-id", "there"],
        "RUN_EXISTS",
    ),
    "resume of what is not there": (["up", BAD, "--run-id", "gone", "--resume"], "RUN_UNKNOWN"),
    "resume without an id": (["up", BAD, "--resume"], ""),
    "unknown option": (["ps", "--nonsense"], "nonsense"),
    "unknown command": (["levitate"], "levitate"),
    "concurrency of nothing": (["up", BAD, "--max-concurrency", "0"], "max-concurrency"),
    "worker without queues": (["worker", "--queues", ","], ""),
    "a heartbeat over a third of the lease": (["ps"], "HEARTBEAT"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_in_one_line_with_nothing_written(
    name: str,
    connection: Connection,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words, code = REFUSALS[name]
    start_run(connection, "bad_tasks", {"fault": "none"}, run_id="there")
    if "heartbeat" in name:
        monkeypatch.setenv("SMITHERS_HEARTBEAT_SECONDS", "20")
    before = rows(connection)
    assert run(words) == 4
    said = capsys.readouterr()
    assert "Traceback" not in said.err + said.out
    assert code.lower() in said.err.lower()
    assert said.out == ""
    assert 1 <= len(said.err.strip().splitlines()) <= 8, said.err
    assert rows(connection) == before


def test_a_refusal_as_json_is_an_object_with_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "nowhere", "--json"]) == 4
    said = json.loads(capsys.readouterr().out)
    assert said["code"] == "RUN_UNKNOWN"
    assert said["message"]
    assert said["hint"]
