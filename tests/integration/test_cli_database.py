"""`smithers db` and `smithers migrate` as a person uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from smithers.sql.archive import connection_environment
from smithers.sql.embedded import stop_server
from smithers.sql.schema_files import migrations
from support.waiting import until

Smithers = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def smithers(tmp_path: Path) -> Generator[Smithers]:
    """Runs the command in a project of its own."""

    def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "smithers.cli.main", *words],
            cwd=tmp_path,
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    yield run
    stop_server(tmp_path / ".smithers")


def test_the_life_of_an_embedded_database(smithers: Smithers, tmp_path: Path) -> None:
    absent = smithers("db", "status", "--json")
    assert absent.returncode == 1
    assert json.loads(absent.stdout)["running"] is False
    assert not (tmp_path / ".smithers").exists()

    started = json.loads(smithers("db", "start", "--json").stdout)
    assert started["running"]
    again = smithers("db", "start")
    assert f"pid {started['pid']}" in again.stdout

    status = smithers("db", "status", "--json")
    facts = json.loads(status.stdout)
    assert status.returncode == 0
    assert (facts["pid"], facts["schema"]) == (started["pid"], "current")

    count = smithers("db", "psql", "-At", "-c", "select count(*) from smithers.runs")
    assert (count.returncode, count.stdout) == (0, "0\n")
    wrong = smithers("db", "psql", "-c", "select nonsense")
    assert wrong.returncode == 1

    assert smithers("db", "stop").stdout == "stopped\n"
    assert smithers("db", "stop").stdout == "it was not running\n"
    assert smithers("db", "status").returncode == 1


def test_a_folder_inside_uses_the_database_above(smithers: Smithers, tmp_path: Path) -> None:
    started = json.loads(smithers("db", "start", "--json").stdout)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "smithers.cli.main", "db", "status", "--json"],
        cwd=inner,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["pid"] == started["pid"]


def test_migrate_a_given_database(smithers: Smithers, empty_database: str) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return smithers(*words, SMITHERS_DATABASE_URL=empty_database)

    assert json.loads(run("db", "status", "--json").stdout)["schema"] == "SCHEMA_MISSING"
    plan = json.loads(run("migrate", "--plan", "--json").stdout)
    assert plan["migrations"] == [m.name for m in migrations()]
    assert (plan["planned"], plan["changed"]) == (True, True)
    assert json.loads(run("db", "status", "--json").stdout)["schema"] == "SCHEMA_MISSING"
    assert "applied 0001" in run("migrate").stdout
    assert "up to date" in run("migrate").stdout
    assert json.loads(run("db", "status", "--json").stdout)["schema"] == "current"
    assert run("db", "psql", "-Atc", "select 7").stdout == "7\n"


def test_a_given_server_is_not_ours_to_start(smithers: Smithers, database: str) -> None:
    for word in ("start", "stop"):
        done = smithers("db", word, SMITHERS_DATABASE_URL=database)
        assert done.returncode == 4
        assert done.stderr.startswith("error[DATABASE_NOT_EMBEDDED]: SMITHERS_DATABASE_URL")


def test_a_database_that_is_down_is_shown_without_the_password(smithers: Smithers) -> None:
    url = "postgresql://u:secret@127.0.0.1:1/x"
    status = smithers("db", "status", SMITHERS_DATABASE_URL=url)
    assert status.returncode == 1
    assert "refused" in status.stdout
    assert "secret" not in status.stdout + status.stderr


def test_a_later_schema_is_refused(smithers: Smithers, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into smithers.migrations (number, name, checksum, breaking)"
            " values (9000, '9000_later.sql', 'x', true)"
        )
    done = smithers("migrate", "--json", SMITHERS_DATABASE_URL=database)
    assert done.returncode == 4
    assert json.loads(done.stdout)["code"] == "SCHEMA_TOO_NEW"


def test_psql_gets_the_password_where_nobody_sees_it() -> None:
    environ = connection_environment("postgresql://u:se%20cret@h:99/x?sslmode=require")
    assert environ == {
        "PGUSER": "u",
        "PGPASSWORD": "se cret",
        "PGHOST": "h",
        "PGPORT": "99",
        "PGDATABASE": "x",
        "PGSSLMODE": "require",
    }


def test_config_says_where_each_setting_came_from(smithers: Smithers, tmp_path: Path) -> None:
    (tmp_path / "smithers.toml").write_text("settle_ms = 200\n")
    environ = {
        "SMITHERS_LEASE_SECONDS": "12",
        "SMITHERS_DATABASE_URL": "postgresql://u:secret@h/x",
    }
    plain = smithers("--log-level", "debug", "config", "--origin", **environ)
    assert "secret" not in plain.stdout
    lines = {line.split()[0]: line for line in plain.stdout.splitlines()}
    assert lines["lease_seconds"].endswith("12.0  (SMITHERS_LEASE_SECONDS)")
    assert lines["log_level"].endswith("debug  (--log-level)")
    assert lines["heartbeat_seconds"].endswith("2.0  (lease_seconds / 6)")
    assert str(tmp_path / "smithers.toml") in lines["settle_ms"]
    values = json.loads(smithers("config", "--json", **environ).stdout)
    assert values["settle_ms"] == 200
    both = json.loads(smithers("config", "--origin", "--json", **environ).stdout)
    assert both["resume_limit"] == {"value": 3, "origin": "default"}


def test_a_database_that_stops_when_idle(smithers: Smithers, tmp_path: Path) -> None:
    started = smithers("db", "start", "--stop-when-idle", "0.3")
    assert "it stops when nobody was connected for 0.3 s" in started.stdout, started
    idle = tmp_path / ".smithers" / "pg.idle"
    until(lambda: idle.read_text() == "0.3 asleep\n")
    until(lambda: not (tmp_path / ".smithers" / "pg" / "postmaster.pid").exists())
    facts = json.loads(smithers("db", "status", "--json").stdout)
    seen = {name: facts[name] for name in ("running", "stop_when_idle", "asleep")}
    assert seen == {"running": False, "stop_when_idle": 0.3, "asleep": True}
    assert smithers("ps").returncode == 0
    assert json.loads(smithers("db", "start", "--stop-when-idle", "--json").stdout)[
        "stop_when_idle"
    ] == (60)
    said = smithers("db", "status", SMITHERS_DB_STOP_WHEN_IDLE="5")
    assert "stop when idle:" in said.stdout
    wrong = smithers("db", "start", "--stop-when-idle", "-1")
    assert (wrong.returncode, "error[USAGE]" in wrong.stderr) == (4, True)
    wrong = smithers("ps", SMITHERS_DB_STOP_WHEN_IDLE="soon")
    assert wrong.stderr.startswith("error[SETTING_INVALID]: db_stop_when_idle")
    smithers("db", "stop")
    assert idle.read_text() == "0 awake\n"


@pytest.mark.slow
def test_looking_while_others_stop_it(smithers: Smithers) -> None:
    """Who comes too late is told so in one line, or starts it again; it is never broken."""
    smithers("db", "start")
    words = [["ps"], ["db", "stop"], ["ps"], ["db", "stop"], ["db", "status"], ["ps"]]
    with ThreadPoolExecutor(len(words)) as pool:
        ends = list(pool.map(lambda each: smithers(*each), words))
    for line, end in zip(words, ends, strict=True):
        late = end.returncode == 4 and end.stderr.startswith("error[DATABASE_UNAVAILABLE]")
        down = line == ["db", "status"] and end.returncode == 1
        assert end.returncode == 0 or late or down, (line, end)
        assert len(end.stderr.splitlines()) <= 2, end
    assert smithers("ps").returncode == 0
