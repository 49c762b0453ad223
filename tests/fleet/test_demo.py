"""What the demo plays on, and what it refuses. The whole story is played in test_packaging.py (from
the wheel, at a terminal) and test_readme.py (by make, without one).
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from smithers.demo.errors import DemoError
from smithers.demo.sample import SAMPLE
from smithers.demo.stage import set_stage
from support.waiting import until

SMITHERS = [sys.executable, "-m", "smithers.cli.main"]


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
    done = subprocess.run(
        ["git", *author, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of seven modules, one of them changed since the last commit."""
    folder = tmp_path / "mine"
    folder.mkdir()
    git(folder, "init", "-q")
    for number in range(7):
        (folder / f"m{number}.py").write_text(f"NUMBER = {number}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "seven")
    (folder / "m0.py").write_text("NUMBER = 'changed'\n")
    return folder


def test_a_repository_is_copied_as_it_was_committed(repository: Path, tmp_path: Path) -> None:
    before = git(repository, "status", "--porcelain=v2")
    inner = repository / "inner"
    inner.mkdir()
    stage = set_stage(tmp_path / "stage", inner)
    assert stage.origin == repository
    assert (stage.repository / "m0.py").read_text() == "NUMBER = 0\n"
    assert stage.workflow.is_file()
    assert git(repository, "status", "--porcelain=v2") == before


@pytest.mark.parametrize("kind", ["no repository", "no commit", "few files", "damaged"])
def test_without_enough_to_inspect_there_is_a_sample(
    kind: str, repository: Path, tmp_path: Path
) -> None:
    folder = repository
    match kind:
        case "no repository":
            folder = tmp_path / "empty"
            folder.mkdir()
        case "no commit":
            folder = tmp_path / "fresh"
            folder.mkdir()
            git(folder, "init", "-q")
        case "few files":
            git(folder, "rm", "-q", "-f", "m0.py", "m1.py")
            git(folder, "commit", "-q", "-m", "five")
        case _:
            for pack in (folder / ".git" / "objects").rglob("*"):
                if pack.is_file():
                    pack.unlink()
    stage = set_stage(tmp_path / "stage", folder)
    assert stage.origin is None
    listed = git(stage.repository, "ls-files").split()
    assert sorted(listed) == sorted(SAMPLE)
    assert git(stage.repository, "rev-parse", "HEAD").strip()


def test_what_is_no_folder_and_a_host_without_git_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DemoError) as none:
        set_stage(tmp_path / "stage", tmp_path / "nowhere")
    assert none.value.code == "DEMO_REPOSITORY_INVALID"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DemoError) as missing:
        set_stage(tmp_path / "stage", tmp_path)
    assert missing.value.code == "GIT_MISSING"
    assert not (tmp_path / "stage").exists()


@pytest.fixture
def environ(tmp_path: Path) -> Generator[dict[str, str]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SMITHERS_")}
    environ = {**kept, "SMITHERS_HOME": str(tmp_path / ".smithers")}
    yield environ
    subprocess.run([*SMITHERS, "db", "stop"], env=environ, check=False, capture_output=True)


@pytest.mark.slow
def test_processes_that_the_demo_would_kill_are_a_reason_to_refuse(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    with subprocess.Popen(
        [*SMITHERS, "supervise"], cwd=tmp_path, env=environ, stderr=subprocess.PIPE, text=True
    ) as other:
        assert other.stderr is not None
        until(lambda: other.stderr is not None and '"started"' in other.stderr.readline())
        done = subprocess.run(
            [*SMITHERS, "demo"],
            cwd=tmp_path,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 4
        assert done.stderr.startswith("error[DEMO_NOT_ALONE]: ")
        assert f"supervisor {other.pid}" in done.stderr
        assert other.poll() is None
        assert not (tmp_path / ".smithers" / "demo").exists()
        other.terminate()
    (tmp_path / ".smithers" / "demo").mkdir()
    with (tmp_path / ".smithers" / "demo" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        again = subprocess.run(
            [*SMITHERS, "demo"], cwd=tmp_path, env=environ, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    assert again.stderr.startswith("error[DEMO_NOT_ALONE]: another demo")
