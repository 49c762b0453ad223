"""A body that takes all memory costs its own attempt and nobody else's."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import pytest

from smithers.worker import memory
from support.waiting import until
from support.worker_bench import WorkerBench

pytestmark = pytest.mark.slow

LIMIT = 400 * 1024 * 1024


@pytest.fixture
def group() -> Generator[Path]:
    """A control group below our own with little memory."""
    folder = next((made for file in memory._files() if (made := make_group(file))), None)
    if folder is None:
        pytest.skip("no control group can be made here")
    yield folder
    until(lambda: not (folder / "cgroup.procs").read_text().split())
    folder.rmdir()


def make_group(file: Path) -> Path | None:
    folder = file.parent / f"smithers-test-{uuid4().hex[:8]}"
    limit = "memory.max" if file.name == "memory.events" else "memory.limit_in_bytes"
    try:
        folder.mkdir()
        (folder / limit).write_text(str(LIMIT))
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        return None
    return folder


def test_the_kernel_kills_the_greedy_one(database: str, tmp_path: Path, group: Path) -> None:
    bench = WorkerBench(database, tmp_path)
    try:
        worker = bench.start("--slots", "2")
        (group / "cgroup.procs").write_text(str(worker.pid))
        bench.ready("calm", "wait_for", path=str(tmp_path / "go"), mark=str(tmp_path / "mark"))
        until((tmp_path / "mark").exists)
        bench.ready("greedy", "grow", megabytes=4_000)
        until(lambda: bench.states("greedy") == {"failed"})
        assert bench.error("greedy")["code"] == "OUT_OF_MEMORY"
        (tmp_path / "go").touch()
        until(lambda: bench.states("calm") == {"finished"})
        assert worker.alive()
    finally:
        bench.close()
