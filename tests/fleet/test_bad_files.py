"""Workflow files that misbehave, past admission: each run has its own typed error, others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from smithers.operations.verifying import verify
from support.fleet import fleet
from support.runs import attempts, connect, node, start_run, status
from support.waiting import until

HEAD = """\
import os, time
from pydantic import BaseModel
from smithers.workflow import Ctx, Node, Parallel, Task, workflow

class Params(BaseModel):
    fault: str = ""

class Out(BaseModel):
    n: int

def work() -> Out:
    return Out(n=1)

@workflow(input=Params, name="bad")
def bad(ctx: Ctx[Params]) -> Node:
"""
TWINS = "    return Parallel(Task('a', Out, run=work), Task('a', Out, run=work))\n"
FILES = {
    "raises-at-import": ("raise RuntimeError('at import')\n", "IMPORT_FAILED", "at import"),
    "exits-at-import": ("import os\nos._exit(9)\n", "RENDER_FAILED", "exited with code 9"),
    "hangs-at-import": ("import time\ntime.sleep(3600)\n", "RENDER_TIMEOUT", "within 6 s"),
    "raises": (HEAD + "    raise ValueError('no luck')\n", "RENDER_FAILED", "no luck"),
    "exits": (HEAD + "    os._exit(3)\n", "RENDER_FAILED", "exited with code 3"),
    "hangs": (HEAD + "    time.sleep(3600)\n", "RENDER_TIMEOUT", "within 2 s"),
    "nonsense": (HEAD + "    return 42\n", "INVALID_NODE", "int"),
    "twins": (HEAD + TWINS, "DUPLICATE_ID", "a"),
    "no-workflow": ("x = 1\n", "WORKFLOW_NOT_FOUND", "bad"),
}
BOUND_SECONDS = 30


@pytest.mark.slow
def test_every_bad_file_fails_its_own_run(database: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for name, (code, _, _) in FILES.items():
        (tmp_path / f"{name}.py").write_text(code)
    roles = ["scheduler", "worker", "supervisor"]
    settings = {"SMITHERS_RENDER_TIMEOUT_SECONDS": "2"}
    with (
        connect(database) as connection,
        fleet(database, tmp_path, roles, lease=3.0, **settings) as whole,
    ):
        runs = {
            name: start_run(connection, name, {}, workflow="bad", folder=tmp_path) for name in FILES
        }
        good = [start_run(connection, "bad_tasks", {"fault": "none"}) for _ in range(3)]
        until(
            lambda: all(status(connection, run) == "failed" for run in runs.values()),
            seconds=BOUND_SECONDS,
        )
        until(lambda: all(status(connection, run) == "finished" for run in good), seconds=20)
        assert len(whole.living()) == 3, whole.logs()
        for name, (_, code, words) in FILES.items():
            row = connection.execute(
                "select error from smithers.run_state where run_id = %s", [runs[name]]
            ).fetchone()
            assert row is not None
            assert row[0]["code"] == code, (name, row[0])
            assert words in f"{row[0]['message']}", (name, row[0])
        assert verify(connection) == []


@pytest.mark.slow
def test_a_missing_distribution_gives_the_attempt_back(database: str, tmp_path: Path) -> None:
    roles = ["scheduler", "worker"]
    with connect(database) as connection, fleet(database, tmp_path, roles) as whole:
        run_id = start_run(connection, "bad_tasks", {"fault": "import"})
        until(lambda: attempts(connection, run_id)[:1] == [("culprit", 1, "released")], seconds=30)
        row = connection.execute(
            "select error from smithers.attempts where run_id = %s and attempt = 1", [run_id]
        ).fetchone()
        assert row is not None
        assert row[0]["code"] == "ENVIRONMENT_MISSING", row
        assert "no_such_distribution" in row[0]["message"], row
        assert row[0]["details"]["node_id"] == "culprit"
        # Another worker may have it; the reason is to be seen meanwhile.
        assert node(connection, run_id, "culprit")["state"] in ("ready", "pending")
        assert status(connection, run_id) == "running"
        assert "no_such_distribution" in (said := whole.cli("why", run_id)).stdout, said
