"""The embedded server through real processes: made once, survives kills, private, anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from smithers.sql.connect import Database, connect
from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded import (
    Options,
    Place,
    ensure_running,
    find_binaries,
    probe,
    processes,
    server,
    server_status,
    stop_server,
)
from smithers.sql.embedded.processes import process_state, serves
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
    starter,
)
from support.users import NOBODY, as_user, needs_root, open_python, open_to_all
from support.waiting import until

open_postgres = pytest.mark.skipif(
    not open_to_all(find_binaries().bindir / "postgres"),
    reason="the Postgres programs are below a closed folder",
)


@pytest.fixture
def tmp_path() -> Generator[Path]:
    with short_folder() as folder:
        yield folder


@pytest.fixture
def new_home(tmp_path: Path) -> Generator[NewHome]:
    with homes_below(tmp_path) as make:
        yield make


def test_it_is_made_private_and_is_found_again(new_home: NewHome) -> None:
    home = new_home()
    dsn = ensure_running(home, FAST)
    assert answer(dsn) == 42
    assert answer(dsn, "select current_database() || current_user") == "smithers" * 2
    assert answer(dsn, "show listen_addresses") == ""
    assert (home / "pg").stat().st_mode & 0o777 == 0o700
    assert (home / "pg.log").stat().st_mode & 0o777 == 0o600
    assert (home / ".gitignore").read_text() == "*\n"
    pid = pid_of(home)
    assert ensure_running(home, FAST) == dsn
    assert pid_of(home) == pid


def test_it_outlives_its_starter_in_a_session_of_its_own(new_home: NewHome) -> None:
    home = new_home()
    process = starter(home)
    out, err = process.communicate()
    assert process.returncode == 0, err
    pid = int(out)
    assert process_state(pid) == "running"
    assert os.getsid(pid) not in (process.pid, os.getsid(0))
    assert os.getpgid(pid) != process.pid
    assert answer(Place(home).dsn()) == 42


def test_no_secret_of_ours_reaches_the_server(
    new_home: NewHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    home = new_home()
    ensure_running(home, FAST)
    environ = Path(f"/proc/{pid_of(home)}/environ").read_bytes()
    assert b"secret" not in environ


def test_eight_at_once_get_one_server(new_home: NewHome) -> None:
    home = new_home()
    processes = [starter(home) for _ in range(8)]
    results = [process.communicate() for process in processes]
    assert [p.returncode for p in processes] == [0] * 8, results
    assert len({out for out, _ in results}) == 1


def test_stop_is_clean_and_may_be_repeated(new_home: NewHome) -> None:
    home = new_home()
    dsn = ensure_running(home, FAST)
    pid = pid_of(home)
    assert stop_server(home)
    assert process_state(pid) != "running"
    assert not stop_server(home)
    status = server_status(home)
    assert (status.running, status.pid, status.major) == (False, None, 18)
    with pytest.raises(psycopg.OperationalError):
        answer(dsn)
    assert ensure_running(home, FAST) == dsn


def test_a_folder_without_a_server_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / ".smithers"
    assert not stop_server(home)
    assert not server_status(home).running
    assert not home.exists()


def test_sigkill_of_the_postmaster_under_load_loses_nothing(new_home: NewHome) -> None:
    home = new_home()
    dsn = ensure_running(home)
    do(dsn, "create table t (x int)", "insert into t values (1)")
    busy = psycopg.connect(dsn)
    busy.execute("insert into t values (2)")
    os.kill(pid_of(home), signal.SIGKILL)
    assert ensure_running(home) == dsn
    busy.close()
    assert answer(dsn, "select count(*) from t") == 1


def test_a_crashed_server_is_restarted_by_connecting_a_stopped_one_is_not(
    new_home: NewHome,
) -> None:
    home = new_home()
    database = Database(ensure_running(home, FAST), home=home, options=FAST)
    os.kill(pid_of(home), signal.SIGKILL)
    connect(database).close()
    stop_server(home)
    with pytest.raises(DatabaseUnavailable) as caught:
        connect(database, deadline_seconds=0.1)
    assert caught.value.hint == "smithers db start"
    assert not server_status(home).running


@pytest.mark.parametrize("state", ["stranger", "zombie"])
def test_a_stale_pid_that_belongs_to_somebody_else(new_home: NewHome, state: str) -> None:
    home = new_home()
    dsn = ensure_running(home, FAST)
    crash(home)
    other = run_as_owner(home, *(["sleep", "600"] if state == "stranger" else ["true"]))
    try:
        if state == "zombie":
            until(lambda: process_state(other.pid) == "zombie")
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            replace_pid(home / "pg" / name, other.pid)
        assert ensure_running(home, FAST) == dsn
        assert answer(dsn) == 42
        if state == "stranger":
            assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_stop_never_kills_a_stranger(new_home: NewHome) -> None:
    home = new_home()
    ensure_running(home, FAST)
    crash(home)
    other = run_as_owner(home, "sleep", "600")
    try:
        replace_pid(home / "pg" / "postmaster.pid", other.pid)
        assert not stop_server(home)
        assert not server_status(home).running
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_empty_lock_files_after_a_power_cut(new_home: NewHome) -> None:
    home = new_home()
    ensure_running(home, FAST)
    crash(home)
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        (home / "pg" / name).write_bytes(b"")
    assert answer(ensure_running(home, FAST)) == 42


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["pg.new/PG_VERSION", "pg.new/pg_wal", "pg/postmaster.pid"])
def test_a_starter_killed_half_way_leaves_nothing_broken(new_home: NewHome, moment: str) -> None:
    home = new_home()
    process = starter(home)
    until((home / moment).exists, pause=0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert answer(ensure_running(home, FAST)) == 42
    assert not (home / "pg.new").exists()


@needs_root
def test_below_a_closed_folder_no_mode_is_changed(new_home: NewHome, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    home = new_home("a", "b", below=closed)
    before = {p: p.stat().st_mode for p in home.parents}
    assert answer(ensure_running(home)) == 42
    assert {p: p.stat().st_mode for p in home.parents} == before
    status = Path(f"/proc/{pid_of(home)}/status").read_text()
    assert f"Uid:\t{(home / 'pg').stat().st_uid}" in status
    assert (home / "pg").stat().st_uid != 0
    held = int(status.partition("CapEff:")[2].split()[0], 16)
    assert held in (1 << 1, 1 << 2), "only reading of closed folders"


@needs_root
@pytest.mark.slow
def test_below_a_closed_folder_the_programs_may_be_too(new_home: NewHome, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = find_binaries().bindir.parent.parent
    for folder in (package, package.with_name(f"{package.name}.libs")):
        subprocess.run(["cp", "-r", folder, closed / folder.name], check=True)
    options = Options(bindir=closed / package.name / "pginstall" / "bin", durable=False)
    assert answer(ensure_running(new_home(below=closed), options)) == 42


@needs_root
@open_postgres
def test_in_an_open_folder_the_server_has_no_privilege(new_home: NewHome) -> None:
    with tempfile.TemporaryDirectory(prefix="smithers-open-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        home = new_home(below=Path(folder))
        ensure_running(home, FAST)
        status = Path(f"/proc/{pid_of(home)}/status").read_text()
        assert int(status.partition("CapPrm:")[2].split()[0], 16) == 0
        stop_server(home)


def connecting_as_nobody(dsn: str) -> str:
    """What a connection by another user ends with."""

    def work() -> str:
        try:
            psycopg.connect(dsn).close()
        except psycopg.Error as exc:
            return str(exc)
        return "connected"

    return str(as_user(NOBODY, work))


@needs_root
def test_another_user_cannot_connect(new_home: NewHome) -> None:
    with tempfile.TemporaryDirectory(prefix="smithers-open-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        home = new_home(below=Path(folder))
        dsn = ensure_running(home, FAST)
        assert "Permission denied" in connecting_as_nobody(dsn)
        # Even if somebody opened the folder and the socket, the server itself says no.
        (home / "pg").chmod(0o755)
        (home / "pg" / ".s.PGSQL.5432").chmod(0o777)
        assert "eer authentication failed" in connecting_as_nobody(dsn)
        assert answer(dsn) == 42
        (home / "pg").chmod(0o700)
        stop_server(home)


@needs_root
def test_a_data_directory_of_another_user_is_refused_in_words(new_home: NewHome) -> None:
    with tempfile.TemporaryDirectory(prefix="smithers-open-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        home = new_home(below=Path(folder))
        ensure_running(home, FAST)

        def work() -> str:
            try:
                ensure_running(home, FAST)
            except DatabaseUnavailable as exc:
                return exc.message
            return "opened"

        assert "belongs to another user" in as_user(NOBODY, work)
        stop_server(home)


@needs_root
@pytest.mark.skipif(open_python() is None, reason="there is no Python that every user can run")
@open_postgres
def test_an_ordinary_user_needs_nobody_else(
    new_home: NewHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_running(new_home(), FAST)  # so that all modules are loaded while we may read them
    monkeypatch.setattr(sys, "executable", open_python())
    with tempfile.TemporaryDirectory(prefix="smithers-user-", dir="/var/tmp") as folder:
        os.chown(folder, NOBODY, NOBODY)
        home = Path(folder) / ".smithers"

        def work() -> list[object]:
            dsn = ensure_running(home, FAST)
            return [answer(dsn), (home / "pg").stat().st_uid, stop_server(home)]

        assert as_user(NOBODY, work) == [42, NOBODY, True]


def test_a_second_project_has_its_own_server(new_home: NewHome) -> None:
    one, two = new_home("one"), new_home("two")
    first, second = ensure_running(one, FAST), ensure_running(two, FAST)
    do(first, "create table only_here (x int)")
    assert answer(second, "select to_regclass('only_here')") is None
    assert pid_of(one) != pid_of(two)
    stop_server(one)
    assert answer(second) == 42


def test_a_moved_project_takes_its_running_server_along(new_home: NewHome, tmp_path: Path) -> None:
    home = new_home("before")
    dsn = ensure_running(home, FAST)
    do(dsn, "create table kept (x int)")
    pid = pid_of(home)
    (tmp_path / "before").rename(tmp_path / "after")
    moved = new_home("after")
    assert answer(ensure_running(moved, FAST), "select to_regclass('kept') is not null") is True
    assert pid_of(moved) == pid


def test_a_path_too_long_for_a_socket_uses_a_private_folder(new_home: NewHome) -> None:
    home = new_home("x" * 90, "y" * 90)
    dsn = ensure_running(home, FAST)
    assert answer(dsn) == 42
    folder = Place(home).socket_dir
    assert folder != home / "pg"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.stat().st_uid == (home / "pg").stat().st_uid
    stop_server(home)
    assert not folder.exists()
    assert ensure_running(home, FAST) == dsn


def test_a_socket_folder_that_others_can_enter_is_refused(new_home: NewHome) -> None:
    home = new_home("x" * 90, "z" * 90)
    folder = Place(home).socket_dir
    folder.mkdir(mode=0o755)
    try:
        with pytest.raises(DatabaseUnavailable, match="only the database's user can enter"):
            ensure_running(home, FAST)
    finally:
        folder.rmdir()


def test_awkward_names_in_the_path(new_home: NewHome) -> None:
    home = new_home('it\'s a "path", with % & ü\\')
    assert answer(ensure_running(home, FAST)) == 42
    crash(home)
    assert answer(ensure_running(home, FAST)) == 42


def test_a_data_directory_of_another_version_is_refused_in_words(new_home: NewHome) -> None:
    home = new_home()
    (home / "pg").mkdir(parents=True)
    (home / "pg" / "PG_VERSION").write_text("12\n")
    with pytest.raises(DatabaseUnavailable) as caught:
        ensure_running(home, FAST)
    assert "Postgres 12" in caught.value.message
    assert caught.value.details["seen"]


def test_a_server_that_cannot_start_says_why(new_home: NewHome) -> None:
    home = new_home()
    with pytest.raises(DatabaseUnavailable) as caught:
        ensure_running(home, Options(durable=False, settings={"shared_buffers": "lots"}))
    assert "shared_buffers" in str(caught.value.details["cause"])
    assert str(home / "pg.log") in (caught.value.hint or "")


@pytest.mark.slow
def test_a_server_that_hangs_is_named_and_left_alone(
    new_home: NewHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home()
    ensure_running(home, FAST)
    pid = pid_of(home)
    monkeypatch.setattr(probe, "ASK_SECONDS", 2)
    monkeypatch.setattr(server, "START_SECONDS", 0.5)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(DatabaseUnavailable, match=f"pid {pid}"):
            ensure_running(home, FAST)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert pid_of(home) == pid


def test_a_home_that_cannot_be_written_is_refused_in_words(new_home: NewHome) -> None:
    home = new_home()
    (home / "pg.lock").mkdir(parents=True)
    with pytest.raises(DatabaseUnavailable, match="can't be run"):
        ensure_running(home, FAST)


def test_processes_are_known_without_proc_too(
    new_home: NewHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home()
    ensure_running(home, FAST)
    pid = pid_of(home)
    monkeypatch.setattr(processes, "PROC", Path("/nowhere"))
    assert processes.process_state(pid) == "running"
    assert processes.process_state(2**22 + 1) == "gone"
    assert serves(pid, home / "pg")
    assert not serves(os.getpid(), home / "pg")


def test_a_home_that_cannot_be_made_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseUnavailable) as caught:
        ensure_running(tmp_path / "file" / ".smithers")
    assert "can't be made" in caught.value.message


def test_a_server_tied_to_its_parent_ends_with_it(new_home: NewHome) -> None:
    home = new_home()
    code = (
        "import sys, time; from pathlib import Path; from smithers.sql.embedded import *;"
        "home = Path(sys.argv[1]);"
        "ensure_running(home, Options(durable=False, die_with_parent=True));"
        "print(server_status(home).pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert serves(pid, home / "pg")
        process.kill()
    until(lambda: process_state(pid) != "running")
