"""A host whose clock is hours off: only the database's clock counts, and the doctor says so."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support.fleet import fleet
from support.runs import WORKFLOWS, connect, status

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += SKEW;
    return result;
}
"""
HOURS = 5

pytestmark = pytest.mark.slow


@pytest.fixture(params=[HOURS, -HOURS], ids=["ahead", "behind"])
def skewed(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A library that shifts the wall clock of the process that it is loaded into."""
    if shutil.which("gcc") is None:
        pytest.skip("the clock is shifted by a few lines of C")
    source, library = tmp_path / "skew.c", tmp_path / "skew.so"
    source.write_text(SHIM)
    skew = f"-DSKEW=({request.param * 3600})"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", skew, "-o", library, source, "-ldl"], check=True, cwd=tmp_path
    )
    return str(library)


def test_a_run_goes_its_way_and_the_doctor_warns(
    skewed: str, database: str, tmp_path: Path
) -> None:
    shape = json.dumps({"log": str(tmp_path / "log"), "seconds": 0.05, "width": 3})
    words = ["up", str(WORKFLOWS / "mixed.py"), "--run-id", "c1", "--input", shape]
    with fleet(database, tmp_path, lease=3.0) as whole, connect(database) as connection:
        whole.settings["LD_PRELOAD"] = skewed
        parked = whole.cli(*words)
        assert parked.returncode == 3, parked.stdout + parked.stderr
        assert whole.cli("approve", "c1", "--no-resume").returncode == 0
        assert whole.cli("signal", "c1", "go", "--data", "{}", "--no-resume").returncode == 0
        done = whole.cli(*words[:4], "--resume")
        assert done.returncode == 0, done.stdout + done.stderr
        assert status(connection, "c1") == "finished"
        assert whole.cli("verify").returncode == 0
        told = whole.cli("doctor", "--json")
        clock = next(each for each in json.loads(told.stdout) if each["check"] == "clock")
        assert (told.returncode, clock["state"]) == (1, "problem")
        row = connection.execute(
            "select bool_and(started_at between now() - interval '5 min' and now()) from"
            " smithers.attempts"
        ).fetchone()
        assert row == (True,), "no time of that host is stored"
