"""Tasks that misbehave: each ends with its own typed error, and harms nobody else's run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.fleet import fleet, processes_marked
from support.runs import attempts, connect, node, start_run, status
from support.waiting import until

FAILURES = {
    "segfault": "EXECUTOR_DIED",
    "exit": "EXECUTOR_DIED",
    "kill": "EXECUTOR_DIED",
    "sys-exit": "TASK_RAISED",
    "raise": "TASK_RAISED",
    "memory": "OUT_OF_MEMORY",
    "flood": "LOG_OVERFLOW",
    "hang": "TASK_TIMEOUT",
    "wrong-model": "OUTPUT_INVALID",
    "invalid": "OUTPUT_INVALID",
    "nan": "OUTPUT_NOT_SERIALISABLE",
    "infinity": "OUTPUT_NOT_SERIALISABLE",
    "huge": "OUTPUT_TOO_LARGE",
}
SURVIVORS: dict[str, dict[str, Any]] = {
    "none": {"text": "fine", "number": 0, "whole": 0},
    "nul": {"text": "a\0b", "number": 0, "whole": 0},
    "surrogate": {"text": "a\ud800b", "number": 0, "whole": 0},
    "big": {"text": "", "number": 0, "whole": 2**70},
    "grandchild": {"text": "left", "number": 0, "whole": 0},
}


@pytest.mark.slow
def test_every_fault_is_typed_and_harms_nobody_else(database: str, tmp_path: Path) -> None:
    roles = ["scheduler", "worker", "supervisor"]
    log_limit = {"SMITHERS_LOG_LIMIT_MB": "32"}
    with connect(database) as connection:
        runs = {
            fault: start_run(
                connection,
                "bad_tasks",
                {"fault": fault, "retries": 0, "timeout": 1.0 if fault == "hang" else None},
            )
            for fault in [*FAILURES, *SURVIVORS]
        }
        with fleet(database, tmp_path, roles, lease=6.0, **log_limit) as whole:
            until(
                lambda: all(
                    status(connection, run) in ("finished", "failed") for run in runs.values()
                ),
                seconds=120,
            )
            assert len(whole.living()) == 3, whole.logs()
            until(lambda: not sleepers(tmp_path), seconds=10)
        for fault, code in FAILURES.items():
            row = node(connection, runs[fault], "culprit")
            assert row["state"] == "failed", (fault, row)
            assert row["error"]["code"] == code, (fault, row["error"])
            assert row["error"]["details"]["node_id"] == "culprit", fault
            assert attempts(connection, runs[fault]) == [("culprit", 1, "failed")], fault
            stored = connection.execute(
                "select error from smithers.run_state where run_id = %s", [runs[fault]]
            ).fetchone()
            assert stored is not None
            error = stored[0]
            assert error["code"] == row["error"]["code"]
            assert "culprit" in error["message"]
        for fault, output in SURVIVORS.items():
            assert status(connection, runs[fault]) == "finished", fault
            found = connection.execute(
                "select output from smithers.select_outputs_out(%s)", [runs[fault]]
            ).fetchone()
            assert found == (output,), fault
        assert whole.cli("verify").returncode == 0


def sleepers(home: Path) -> list[int]:
    """Living `sleep 86400` of this test's fleet."""
    return [
        pid
        for pid in processes_marked(str(home))
        if b"86400" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
    ]
