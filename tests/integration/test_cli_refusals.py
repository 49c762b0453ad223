"""Wrong input: exit 4, one clear line with a code, no traceback, nothing written.

The bank has an entry for every command, file and setting that a person can get wrong. What goes
wrong with the database itself is in test_bad_database.py, with pipes and terminals in
tests/fleet/test_progress.py, with the clock and the disk in test_doctor.py.
"""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from smithers.cli.main import run
from smithers.sql.calls import Connection
from support.runs import WORKFLOWS, start_run

BAD = str(WORKFLOWS / "bad_tasks.py")
FINE = ["up", BAD, "--input", '{"fault": "none"}']
MEGABYTE = "x" * 1_000_000
WORKFLOW = "from smithers.workflow import *\nfrom pydantic import BaseModel, RootModel\n"
FILES = {
    "two.py": WORKFLOW
    + "@workflow()\ndef one(ctx) -> Node: return Sequence()\n"
    + "@workflow()\ndef other(ctx) -> Node: return Sequence()\n",
    "broken.py": "def nothing(:\n",
    "raises.py": "raise ValueError('deliberate')\n",
    "leaves.py": "raise SystemExit(0)\n",
    "exits.py": "import os\nos._exit(3)\n",
    "empty.py": "",
    "imports.py": "import no_such_module_anywhere\n",
    "async_one.py": WORKFLOW + "@workflow()\nasync def one(ctx) -> Node: return Sequence()\n",
    "root_model.py": WORKFLOW
    + "class All(RootModel[int]): ...\n@workflow(input=All)\ndef one(ctx) -> Node: ...\n",
    "bad_name.py": WORKFLOW + "@workflow(name='a\\nb')\ndef one(ctx) -> Node: return Sequence()\n",
    "outside.py": WORKFLOW
    + "@workflow(include=['/etc/passwd'])\ndef one(ctx) -> Node: return Sequence()\n",
    "no_file.py": WORKFLOW
    + "@workflow(include=['nowhere.txt'])\ndef one(ctx) -> Node: return Sequence()\n",
    "computed.py": WORKFLOW
    + "NAMES = ['a']\n@workflow(include=NAMES)\ndef one(ctx) -> Node: return Sequence()\n",
    "list.json": "[1, 2]",
    "half.json": '{"fault": ',
    "smithers.toml.unknown": "lease = 3\n",
    "smithers.toml.type": "lease_seconds = [3]\n",
    "smithers.toml.broken": "lease_seconds = \n",
}


@dataclass(frozen=True)
class Wrong:
    """A command line, the code that it is refused with, and what surrounds it."""

    words: Sequence[str]
    code: str
    environ: dict[str, str] = field(default_factory=dict[str, str])
    toml: str = ""
    stdin: str | None = None


def unknown(*words: str) -> Wrong:
    return Wrong(words, "RUN_UNKNOWN")


def setting(name: str, value: str, code: str = "SETTING_INVALID") -> Wrong:
    return Wrong(["ps"], code, environ={f"SMITHERS_{name}": value})


def run_id(value: str) -> Wrong:
    return Wrong([*FINE, "--run-id", value], "RUN_ID_INVALID")


BANK: dict[str, Wrong] = {
    # A run that isn't there, for every command that takes one.
    "status": unknown("status", "nowhere"),
    "why": unknown("why", "nowhere"),
    "output": unknown("output", "nowhere"),
    "output of a node": unknown("output", "nowhere", "node"),
    "events": unknown("events", "nowhere"),
    "events, following": unknown("events", "nowhere", "-f"),
    "pause": unknown("pause", "nowhere"),
    "cancel": unknown("cancel", "nowhere"),
    "resume": unknown("resume", "nowhere"),
    "approve": unknown("approve", "nowhere"),
    "deny": unknown("deny", "nowhere"),
    "signal": unknown("signal", "nowhere", "go"),
    "human answer": unknown("human", "answer", "nowhere", "--data", "{}"),
    "verify": unknown("verify", "nowhere"),
    "up --resume": unknown("up", BAD, "--run-id", "gone", "--resume"),
    "an id with a NUL": unknown("status", "a\0b"),
    "an id of a megabyte": unknown("why", MEGABYTE),
    "an id of nothing": unknown("cancel", ""),
    "an id in half a surrogate pair": unknown("status", "\ud800"),
    # What a run may be called.
    "run id with a slash": run_id("a/b"),
    "run id of a megabyte": run_id(MEGABYTE),
    "run id with a NUL": run_id("a\0b"),
    "run id of nothing": run_id(""),
    "run id of two dots": run_id(".."),
    "run id with a line end": run_id("a\nb"),
    "run id that reverses the text": run_id("a\u202eb"),
    "run id like an option": Wrong([*FINE, "--run-id=-x"], "RUN_ID_INVALID"),
    "run id is taken": Wrong([*FINE, "--run-id", "there"], "RUN_EXISTS"),
    # Nodes, approvals, signals, answers.
    "no approval is open": Wrong(["approve", "there"], "APPROVAL_UNKNOWN"),
    "approve a node that isn't there": Wrong(
        ["approve", "there", "--node", "nope"], "APPROVAL_UNKNOWN"
    ),
    "deny a node of a megabyte": Wrong(["deny", "there", "--node", MEGABYTE], "APPROVAL_UNKNOWN"),
    "approve a pass before the first": Wrong(
        ["approve", "there", "--node", "n", "--iteration", "-1"], "USAGE"
    ),
    "output of a node that isn't there": Wrong(["output", "there", "nope"], "NODE_UNKNOWN"),
    "output of a pass without a node": Wrong(["output", "there", "--iteration", "1"], "USAGE"),
    "signal data is no JSON": Wrong(["signal", "there", "go", "--data", "{"], "DATA_NOT_JSON"),
    "signal data is no number": Wrong(["signal", "there", "go", "--data", "NaN"], "DATA_NOT_JSON"),
    "signal data has no bottom": Wrong(
        ["signal", "there", "go", "--data", "[" * 100_000], "DATA_NOT_JSON"
    ),
    "signal data file is missing": Wrong(
        ["signal", "there", "go", "--data", "@nowhere"], "DATA_NOT_JSON"
    ),
    "signal of no name": Wrong(["signal", "there", ""], "SIGNAL_NAME_INVALID"),
    "signal name of a megabyte": Wrong(["signal", "there", MEGABYTE], "SIGNAL_NAME_INVALID"),
    "answer to nothing": Wrong(
        ["human", "answer", "there", "--data", "{}"], "HUMAN_REQUEST_UNKNOWN"
    ),
    "events since yesterday": Wrong(["events", "there", "--since", "yesterday"], "USAGE"),
    # Files.
    "missing file": Wrong(["up", "nowhere.py"], "FILE_NOT_FOUND"),
    "a folder": Wrong(["up", "."], "FILE_NOT_FOUND"),
    "a device": Wrong(["up", "/dev/zero"], "FILE_NOT_FOUND"),
    "a pipe": Wrong(["up", "pipe.py"], "FILE_NOT_FOUND"),
    "a file name with a NUL": Wrong(["up", "a\0.py"], "FILE_NOT_FOUND"),
    "a link to itself": Wrong(["up", "loop.py"], "FILE_NOT_FOUND"),
    "bytes that are no text": Wrong(["up", "binary.py"], "SYNTAX_ERROR"),
    "a file above the limit": Wrong(["graph", "large.py"], "BUNDLE_TOO_LARGE"),
    "syntax error": Wrong(["up", "broken.py"], "SYNTAX_ERROR"),
    "raises on import": Wrong(["up", "raises.py"], "IMPORT_FAILED"),
    "ends Python on import": Wrong(["up", "leaves.py"], "IMPORT_FAILED"),
    "ends its process on import": Wrong(["up", "exits.py"], "RENDER_FAILED"),
    "missing distribution": Wrong(["up", "imports.py"], "ENVIRONMENT_MISSING"),
    "no workflow": Wrong(["up", "empty.py"], "WORKFLOW_NOT_FOUND"),
    "two workflows": Wrong(["up", "two.py"], "WORKFLOW_AMBIGUOUS"),
    "no such workflow": Wrong(["graph", "two.py:third"], "WORKFLOW_NOT_FOUND"),
    "an async workflow": Wrong(["up", "async_one.py"], "IMPORT_FAILED"),
    "an input without fields": Wrong(["up", "root_model.py"], "IMPORT_FAILED"),
    "a workflow's name with a line end": Wrong(["up", "bad_name.py"], "IMPORT_FAILED"),
    "includes a file outside": Wrong(["up", "outside.py"], "INCLUDE_REFUSED"),
    "includes no file": Wrong(["up", "no_file.py"], "FILE_NOT_FOUND"),
    "includes a variable": Wrong(["up", "computed.py"], "INCLUDE_REFUSED"),
    # Inputs.
    "input is no JSON": Wrong(["up", BAD, "--input", "{"], "INPUT_NOT_JSON"),
    "input file is missing": Wrong(["up", BAD, "--input", "@nowhere.json"], "INPUT_NOT_JSON"),
    "input file is a folder": Wrong(["up", BAD, "--input", "@."], "INPUT_NOT_JSON"),
    "input file is cut off": Wrong(["up", BAD, "--input", "@half.json"], "INPUT_NOT_JSON"),
    "input file is no UTF-8": Wrong(["up", BAD, "--input", "@binary.py"], "INPUT_NOT_JSON"),
    "input from a stdin that says nothing": Wrong(
        ["up", BAD, "--input", "-"], "INPUT_NOT_JSON", stdin=""
    ),
    "input is a list": Wrong(["up", BAD, "--input", "@list.json"], "INPUT_INVALID"),
    "input is null": Wrong(["up", BAD, "--input", "null"], "INPUT_INVALID"),
    "input misses a field": Wrong(["graph", BAD, "--input", "{}"], "INPUT_INVALID"),
    "input has a wrong type": Wrong(["up", BAD, "--input", '{"fault": 1}'], "INPUT_INVALID"),
    # Resumes.
    "resume without an id": Wrong(["up", BAD, "--resume"], "RUN_ID_MISSING"),
    "resume with another input": Wrong(
        [*FINE[:2], "--run-id", "there", "--resume", "--pinned", "--input", '{"fault": "raise"}'],
        "RUN_INPUT_DIFFERS",
    ),
    "resume with another file": Wrong(
        ["up", "two.py:one", "--run-id", "there", "--resume"], "RESUME_METADATA_MISMATCH"
    ),
    # Options.
    "unknown option": Wrong(["ps", "--nonsense"], "USAGE"),
    "unknown command": Wrong(["levitate"], "USAGE"),
    "unknown command of db": Wrong(["db", "levitate"], "USAGE"),
    "a word too many": Wrong(["status", "there", "and"], "USAGE"),
    "a word too few": Wrong(["signal", "there"], "USAGE"),
    "concurrency of nothing": Wrong([*FINE, "--max-concurrency", "0"], "USAGE"),
    "concurrency in words": Wrong([*FINE, "--max-concurrency", "many"], "USAGE"),
    "worker without slots": Wrong(["worker", "--slots", "0"], "USAGE"),
    "worker without queues": Wrong(["worker", "--queues", ","], "USAGE"),
    "worker without time": Wrong(["worker", "--grace", "-1"], "USAGE"),
    "a port that is none": Wrong(["scheduler", "--metrics-port", "70000"], "USAGE"),
    "supervise all and one": Wrong(["supervise", "there", "--all"], "USAGE"),
    "supervise without a pause": Wrong(["supervise", "--interval", "0"], "USAGE"),
    "psql of a setting that is wrong": Wrong(
        ["db", "psql"], "SETTING_INVALID", environ={"SMITHERS_LEASE_SECONDS": "soon"}
    ),
    # Settings.
    "a lease in words": setting("LEASE_SECONDS", "soon"),
    "a lease of minus one": setting("LEASE_SECONDS", "-1"),
    "a lease without end": setting("LEASE_SECONDS", "inf"),
    "a heartbeat over a third of the lease": setting("HEARTBEAT_SECONDS", "20"),
    "a level that is none": setting("LOG_LEVEL", "loud"),
    "a database that is no URL": setting("DATABASE_URL", "localhost"),
    "a setting misspelt": setting("LEESE_SECONDS", "3", "SETTING_UNKNOWN"),
    "a flag in other words": setting("DATABASE_POOLED", "perhaps"),
    "a setting that a file misspells": Wrong(["ps"], "SETTING_UNKNOWN", toml="unknown"),
    "a setting of the wrong type": Wrong(["config"], "SETTING_INVALID", toml="type"),
    "a file that is no TOML": Wrong(["config"], "SETTINGS_FILE_INVALID", toml="broken"),
}


@pytest.fixture(autouse=True)
def _home(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[None, None, None]:
    monkeypatch.setenv("SMITHERS_DATABASE_URL", database)
    monkeypatch.setenv("SMITHERS_HOME", str(tmp_path / ".smithers"))
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "loop.py").symlink_to("loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    with (tmp_path / "large.py").open("wb") as large:
        large.truncate(64 * 1024 * 1024)
    yield
    (tmp_path / "large.py").unlink()


def rows(connection: Connection) -> int:
    row = connection.execute(
        "select (select count(*) from smithers.runs) + (select count(*) from smithers.events)"
        " + (select count(*) from smithers.sources) + (select count(*) from smithers.processes)"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_there_are_enough_of_them() -> None:
    assert len(BANK) >= 60


@pytest.mark.parametrize("name", BANK)
def test_refused_in_one_line_with_nothing_written(
    name: str,
    connection: Connection,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    wrong = BANK[name]
    start_run(connection, "bad_tasks", {"fault": "none"}, run_id="there")
    for variable, value in wrong.environ.items():
        monkeypatch.setenv(variable, value)
    if wrong.toml:
        (tmp_path / f"smithers.toml.{wrong.toml}").rename(tmp_path / "smithers.toml")
    if wrong.stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(wrong.stdin))
    before, files = rows(connection), sorted(tmp_path.iterdir())
    assert run(wrong.words) == 4
    said = capsys.readouterr()
    refused_in_one_line(said.err, wrong.code)
    assert said.out == ""
    assert rows(connection) == before
    after = [path for path in sorted(tmp_path.iterdir()) if path.name != ".smithers"]
    assert after == files


def refused_in_one_line(said: str, code: str) -> None:
    lines = said.splitlines()
    assert lines[0].startswith(f"error[{code}]: "), said[:2_000]
    assert len(lines) <= 2, said[:2_000]
    assert all(line.startswith("hint: ") for line in lines[1:]), said[:2_000]
    assert len(said) < 4_000, "a long value is shown short"
    assert said.isprintable() or said.replace("\n", "").isprintable()


def test_a_port_that_another_project_has(connection: Connection) -> None:
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        for role in ("worker", "scheduler", "supervise"):
            words = [sys.executable, "-m", "smithers.cli.main", role, "--metrics-port", port]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 4
            refused_in_one_line(done.stderr, "PORT_UNAVAILABLE")
    assert rows(connection) == 0


def test_a_refusal_as_json_is_an_object_with_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "nowhere", "--json"]) == 4
    said = json.loads(capsys.readouterr().out)
    assert said["code"] == "RUN_UNKNOWN"
    assert said["message"]
    assert said["hint"]
