"""`smithers doctor` on real servers, folders and programs, whole and broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import conninfo, sql

from smithers.cli.main import run
from smithers.operations.doctor import looking_database, looking_programs
from smithers.operations.doctor.examine import examine
from smithers.process.settings import load_settings
from smithers.process.version import version
from smithers.sql.embedded import server_status, stop_server
from smithers.sql.embedded.place import Place
from smithers.sql.processes import register_process
from support.fleet import dead
from support.homes import ROOT
from support.postgres import shift_clock, throwaway_cluster
from support.runs import connect, start_run
from support.users import NOBODY, as_user
from support.waiting import until

CHECKS = (
    *("python", "platform", "smithers", "settings", "home", "disk", "limits", "database"),
    *("durability", "connections", "schema", "clock", "processes", "runs", "git", "agents"),
)
Row = dict[str, Any]
Doctor = Callable[..., tuple[int, dict[str, Row]]]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder that is all of PATH, with nothing but git in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    git = shutil.which("git")
    assert git is not None
    (folder / "git").symlink_to(git)
    return folder


@pytest.fixture
def project(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project of somebody who has no files and no keys; the working directory."""
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HOME", str(home))
    names = {name for agent in looking_programs.AGENTS for name in agent.variables}
    for name in (*names, "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def doctor(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Doctor:
    """Runs the command in this process; gives the exit code and the findings by check."""

    def work(**environ: str) -> tuple[int, dict[str, Row]]:
        with monkeypatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(name, value)
            code = run(["doctor", "--json"])
        found: list[Row] = json.loads(capsys.readouterr().out)
        assert code == any(each["state"] == "problem" for each in found), found
        for each in found:
            assert set(each) == {"check", "state", "message", "fix", "details"}, each
            assert (each["fix"] is not None) == (each["state"] in ("warning", "problem")), each
        return code, {each["check"]: each for each in found}

    return work


def in_state(found: dict[str, Row], state: str) -> set[str]:
    return {check for check, row in found.items() if row["state"] == state}


def program(folder: Path, name: str, text: str) -> None:
    """Put a script on PATH."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def tree(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*")}


def do(dsn: str, statement: sql.SQL | sql.Composed) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)


def set_on_database(dsn: str, setting: str, value: str) -> None:
    name = sql.Identifier(str(conninfo.conninfo_to_dict(dsn)["dbname"]))
    words = sql.SQL("alter database {} set {} = {}")
    do(dsn, words.format(name, sql.Identifier(setting), sql.Literal(value)))


# Healthy.


def test_a_healthy_project(doctor: Doctor, database: str) -> None:
    code, found = doctor(SMITHERS_DATABASE_URL=database)
    assert (code, tuple(found)) == (0, CHECKS)
    healthy = {"database", "connections", "schema", "clock", "processes", "runs", "home", "agents"}
    assert healthy <= in_state(found, "ok"), found
    assert found["database"]["details"]["version"] >= 150_000
    assert abs(found["clock"]["details"]["offset_seconds"]) < 2


@pytest.mark.parametrize(("encoding", "mark"), [("ascii", "+"), ("utf-8", "✓")])
def test_what_people_see(encoding: str, mark: str, project: Path, database: str) -> None:
    environ = {"SMITHERS_DATABASE_URL": database, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-m", "smithers.cli.main", "doctor"],
        env={**os.environ, **environ},
        capture_output=True,
        check=False,
    )
    lines = done.stdout.decode(encoding).splitlines()
    assert (done.returncode, done.stderr) == (0, b""), done
    assert f"{mark} python" in lines[0]
    checks = [line.split()[1] for line in lines if line[0] in f"{mark}!"]
    assert checks == list(CHECKS)
    assert all(line.startswith("    ") and "fix: " in line for line in lines if line[0] == " ")
    assert "\x1b" not in "".join(lines)


def test_an_empty_folder_stays_empty(doctor: Doctor, tmp_path: Path) -> None:
    before = tree(tmp_path)
    code, found = doctor(TMPDIR=str(tmp_path))
    assert (code, tree(tmp_path)) == (0, before)
    assert "starts when needed" in found["database"]["message"]
    assert in_state(found, "skipped") == set(looking_database.LATER)


def test_an_embedded_server_is_asked_and_not_started(doctor: Doctor) -> None:
    with throwaway_cluster() as home:
        code, found = doctor(SMITHERS_HOME=str(home))
        assert code == 0, found
        assert found["database"]["details"]["running"] is True
        assert found["schema"]["details"]["code"] == "SCHEMA_MISSING"
        assert "fsync" in found["durability"]["message"]

        stop_server(home)
        before = tree(home)
        code, found = doctor(SMITHERS_HOME=str(home))
        assert (code, server_status(home).running, tree(home)) == (0, False, before)
        assert "stopped" in found["database"]["message"]

        (home / "pg" / "PG_VERSION").write_text("12\n")
        code, found = doctor(SMITHERS_HOME=str(home))
        assert in_state(found, "problem") == {"database"}
        assert "made by Postgres 12" in found["database"]["message"]
        (home / "pg" / "PG_VERSION").unlink()
        code, found = doctor(SMITHERS_HOME=str(home))
        assert "in the way" in found["database"]["message"]


# Databases.


def test_a_wrong_password_is_told_and_not_shown(
    doctor: Doctor, capsys: pytest.CaptureFixture[str]
) -> None:
    with throwaway_cluster() as home:
        rules = home / "pg" / "pg_hba.conf"
        rules.write_text(f"local all stranger scram-sha-256\n{rules.read_text()}")
        dsn = Place(home).dsn("postgres")
        do(dsn, sql.SQL("create role stranger login password 'right'"))
        do(dsn, sql.SQL("select pg_reload_conf()"))
        url = conninfo.make_conninfo(dsn, user="stranger", password="secret")
        code, found = doctor(SMITHERS_DATABASE_URL=url)
    assert (code, in_state(found, "problem")) == (1, {"database"})
    assert "authentication failed" in found["database"]["message"]
    assert "secret" not in json.dumps(found)
    assert in_state(found, "skipped") == set(looking_database.LATER)


@pytest.mark.parametrize("url", ["postgresql://u:secret@127.0.0.1:1/x", "postgresql://u:secret@["])
def test_no_server(url: str, doctor: Doctor) -> None:
    code, found = doctor(SMITHERS_DATABASE_URL=url)
    assert (code, in_state(found, "problem")) == (1, {"database"})
    assert "secret" not in json.dumps(found)


def test_a_newer_schema(doctor: Doctor, database: str) -> None:
    do(
        database,
        sql.SQL(
            "insert into smithers.migrations (number, name, checksum, breaking)"
            " values (9000, '9000_later.sql', 'x', true)"
        ),
    )
    code, found = doctor(SMITHERS_DATABASE_URL=database)
    assert (code, in_state(found, "problem")) == (1, {"schema"})
    assert found["schema"]["details"]["code"] == "SCHEMA_TOO_NEW"
    assert in_state(found, "skipped") == {"processes", "runs"}


def test_no_schema_yet(doctor: Doctor, empty_database: str) -> None:
    code, found = doctor(SMITHERS_DATABASE_URL=empty_database)
    assert (code, in_state(found, "problem")) == (1, {"schema"})
    assert found["schema"]["fix"] == "smithers migrate"


def test_tables_that_somebody_holds(
    doctor: Doctor, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_database, "_PATIENCE", "200ms")
    with psycopg.connect(database) as holder:
        holder.execute("lock table smithers.migrations")
        code, found = doctor(SMITHERS_DATABASE_URL=database)
    assert (code, in_state(found, "problem")) == (1, {"schema"})


def test_a_database_that_only_reads_and_has_another_time(doctor: Doctor, database: str) -> None:
    shift_clock(database, timedelta(hours=-3))
    set_on_database(database, "default_transaction_read_only", "on")
    code, found = doctor(SMITHERS_DATABASE_URL=database)
    assert (code, in_state(found, "problem")) == (1, {"database", "clock"})
    assert "3.0 h ahead of" in found["clock"]["message"]


def test_processes_of_another_release_and_a_stuck_run(doctor: Doctor, database: str) -> None:
    with connect(database) as connection:
        for number, release in enumerate(("0.0.1", version())):
            register_process(
                connection,
                kind="worker",
                host="h",
                pid=number + 1,
                uuid=uuid4(),
                lease=timedelta(hours=1),
                version=release,
            )
        start_run(connection, "bad_tasks", {"fault": "none"}, run_id="lost")
    code, found = doctor(SMITHERS_DATABASE_URL=database)
    assert found["runs"]["details"] == {"active": 1, "stuck": []}
    shift_clock(database, timedelta(seconds=50))
    code, found = doctor(SMITHERS_DATABASE_URL=database)
    assert (code, found["processes"]["state"], found["clock"]["state"]) == (0, "warning", "warning")
    assert "2 worker; some are of 0.0.1" in found["processes"]["message"]
    assert found["runs"]["fix"] == "smithers why lost"


# Programs.


def test_agents(
    doctor: Doctor, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_programs, "SECONDS", 1.0)
    program(programs, "claude", "echo '2.1.4 (Claude Code)'; echo noise >&2")
    program(programs, "codex", f"/bin/sleep 300 & echo $! > {tmp_path}/pid; wait")
    program(programs, "opencode", r"printf '\033[2J\377\000%%garbage\n'")
    code, found = doctor(ANTHROPIC_API_KEY="sk-secret")
    assert code == 0
    claude, codex, opencode = (found[f"agent-{n}"] for n in ("claude", "codex", "opencode"))
    assert claude["message"] == "2.1.4, credentials by ANTHROPIC_API_KEY"
    assert (codex["state"], "was killed" in codex["message"]) == ("warning", True)
    assert (opencode["state"], "says no version" in opencode["message"]) == ("warning", True)
    assert "\x1b" not in opencode["message"]
    assert "sk-secret" not in json.dumps(found)
    assert "agents" not in found
    until(lambda: dead([int((tmp_path / "pid").read_text())]))


def test_credentials_in_a_file_are_seen_and_not_read(
    doctor: Doctor, programs: Path, tmp_path: Path
) -> None:
    program(programs, "codex", "echo codex-cli 0.46.0")
    _, found = doctor()
    assert "codex login" in found["agent-codex"]["fix"]
    file = tmp_path / "home" / ".codex" / "auth.json"
    file.parent.mkdir()
    file.write_text("secret")
    _, found = doctor()
    assert found["agent-codex"]["details"]["credentials"] == str(file)
    assert "secret" not in json.dumps(found)


def test_git_is_missing_or_old(doctor: Doctor, programs: Path) -> None:
    (programs / "git").unlink()
    code, found = doctor()
    assert (code, found["git"]["fix"]) == (0, "install git")
    program(programs, "git", "echo git version 2.29.2")
    assert "2.29.2 is old" in doctor()[1]["git"]["message"]


def test_git_that_knows_nobody(doctor: Doctor, tmp_path: Path) -> None:
    nowhere = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    _, found = doctor(**nowhere)
    assert "user.name and user.email" in found["git"]["message"]
    (tmp_path / "home" / ".gitconfig").write_text("[user]\nname = N\nemail = e@x\n")
    _, found = doctor(**nowhere)
    assert found["git"]["state"] == "ok"


def test_another_smithers_is_found_first(doctor: Doctor, programs: Path) -> None:
    assert "no smithers is on PATH" in doctor()[1]["smithers"]["message"]
    program(programs, "smithers", "echo 0.0.1")
    assert str(programs / "smithers") in doctor()[1]["smithers"]["message"]
    (programs / "smithers").write_text(f"#!{sys.executable}\n")
    assert doctor()[1]["smithers"]["state"] == "ok"


# Settings and folders.


def test_settings_that_cant_be_read(doctor: Doctor, project: Path) -> None:
    (project / "smithers.toml").write_text("home = [\n")
    code, found = doctor()
    assert (code, in_state(found, "problem")) == (1, {"settings"})
    assert tuple(found) == CHECKS
    assert found["git"]["state"] != "skipped"
    (project / "smithers.toml").write_text("settle_mss = 3\n")
    assert "settle_ms" in doctor()[1]["settings"]["fix"]


def states(settings_home: Path) -> dict[str, str]:
    settings = load_settings({"home": settings_home}, environ={})
    return {finding.check: finding.state.value for finding in examine(settings)}


def refused_homes(folder: Path) -> Iterable[dict[str, str]]:
    """What is found in a folder that can't be written, with and without a home in it."""
    for home in (folder / ".smithers", folder / "missing" / ".smithers"):
        yield as_user(NOBODY, partial(states, home)) if ROOT else states(home)


def test_a_home_that_cant_be_written(project: Path) -> None:
    (project / ".smithers").mkdir(mode=0o555)
    temporary = Path(tempfile.gettempdir())
    for above in [each for each in project.parents if ROOT and temporary in each.parents]:
        # pytest's own, closed to others
        above.chmod(above.stat().st_mode | 0o055)
    project.chmod(0o555)
    try:
        for found in refused_homes(project):
            assert [check for check, state in found.items() if state == "problem"] == ["home"]
    finally:
        project.chmod(0o755)


def test_a_file_where_the_home_should_be(doctor: Doctor, project: Path) -> None:
    (project / "file").write_text("")
    code, found = doctor(SMITHERS_HOME=str(project / "file"))
    assert (code, "home" in in_state(found, "problem")) == (1, True)
    assert "is no folder" in found["home"]["message"]
