"""`smithers db dump` and `db restore`: whole or not at all, into what is empty, by whom it fits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, sql

from smithers.cli.main import run
from smithers.sql import archive
from smithers.sql.calls import Connection
from smithers.sql.embedded import find_binaries, stop_server
from smithers.sql.embedded.locator import DEBIAN, OLDEST
from support import postgres
from support.fleet import fleet
from support.homes import short_folder
from support.postgres import TestServer
from support.runs import start_run
from support.waiting import until

BINDIR = find_binaries().bindir
LATER = (
    "insert into smithers.migrations (number, name, checksum, breaking)"
    " values (9000, '9000_later.sql', 'x', true)"
)

WORKFLOW = """
from pydantic import BaseModel
from smithers.workflow import Approval, Ctx, Node, Sequence, Task, workflow

class Made(BaseModel):
    text: str
    parts: list[str]

def make(text: str) -> Made:
    return Made(text=text, parts=text.split())

@workflow()
def shipped(ctx: Ctx) -> Node:
    first = Task("first", Made, run=make, args={"text": "käse 'n\\\\t ✓"})
    made = ctx.output_maybe(first)
    return Sequence(
        first,
        Approval("ship", title="Ship?"),
        made and Task("last", Made, run=make, args={"text": made.text + " shipped"}),
    )
"""


@dataclass
class Told:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    def refused(self, code: str) -> None:
        """It ended with one error line of that code, perhaps a hint, and nothing else."""
        assert self.code == 4, self
        first, *rest = self.err.splitlines()
        assert first.startswith(f"error[{code}]: "), self.err
        assert len(rest) <= 1, self.err
        assert all(line.startswith("hint: ") for line in rest), self.err
        assert self.out == ""


Db = Callable[..., Told]


@pytest.fixture
def db(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Db:
    """Runs `smithers db …` in this process on a given database."""
    monkeypatch.setenv("SMITHERS_HOME", str(tmp_path / ".smithers"))

    def work(dsn: str, *words: str | Path, bindir: Path = BINDIR) -> Told:
        monkeypatch.setenv("SMITHERS_DATABASE_URL", dsn)
        monkeypatch.setenv("SMITHERS_PG_BINDIR", str(bindir))
        code = run(["db", *map(str, words)])
        said = capsys.readouterr()
        return Told(code, said.out, said.err)

    return work


@pytest.fixture
def other(server: TestServer, template: str) -> Generator[str]:
    """The DSN of a second database, migrated and empty."""
    with postgres.database_on(server, template) as name:
        yield server.url(name)


@pytest.fixture
def dumped(db: Db, connection: Connection, database: str, tmp_path: Path) -> Path:
    """A dump of a database with one run."""
    start_run(connection, "bad_tasks", {"fault": "none"}, run_id="there")
    path = tmp_path / "d.dump"
    assert db(database, "dump", path).code == 0
    return path


def everything(dsn: str) -> dict[str, list[str]]:
    """Every row of every table of ours as text, and the functions."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        names = connection.execute(
            "select c.relname, c.relkind = 'S' from pg_class c where c.relkind in ('r', 'S')"
            " and c.relnamespace = 'smithers'::regnamespace order by 1"
        ).fetchall()
        found = {}
        for name, is_sequence in names:
            what = sql.SQL("(last_value, is_called)" if is_sequence else "t")
            query = sql.SQL("select {}::text from smithers.{} t order by 1")
            found[name] = [
                row[0] for row in connection.execute(query.format(what, sql.Identifier(name)))
            ]
        found["functions"] = [
            row[0]
            for row in connection.execute(
                "select pg_get_functiondef(oid) from pg_proc where pronamespace"
                " in ('smithers'::regnamespace, 'smithers_p1'::regnamespace) order by 1"
            )
        ]
    return found


def test_a_dump_is_every_row_and_function(
    db: Db, dumped: Path, database: str, other: str, empty_database: str
) -> None:
    """Into a migrated database and into one without any table."""
    for target in (other, empty_database):
        told = db(target, "restore", dumped, "--json")
        assert told.code == 0, told
        result = json.loads(told.out)
        assert result["runs"] == 1
        assert result["bytes"] == dumped.stat().st_size
        assert everything(target) == everything(database)
        with psycopg.connect(target) as connection:
            row = connection.execute("show statement_timeout").fetchone()
            assert row == ("15s",)


def test_a_dump_replaces_an_older_one_and_is_private(db: Db, database: str, tmp_path: Path) -> None:
    path = tmp_path / "d.dump"
    path.write_text("old")
    told = db(database, "dump", path, "--json")
    assert json.loads(told.out) | {"seconds": 0} == {
        "path": str(path),
        "bytes": path.stat().st_size,
        "seconds": 0,
    }
    assert path.read_bytes().startswith(b"PGDMP")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["d.dump"]


def test_standard_output_holds_the_dump_and_nothing_else(
    dumped: Path, database: str, tmp_path: Path
) -> None:
    target = tmp_path / "out.dump"
    with target.open("wb") as out:
        subprocess.run(
            [sys.executable, "-m", "smithers.cli.main", "db", "dump"],
            env={**os.environ, "SMITHERS_DATABASE_URL": database},
            stdout=out,
            check=True,
        )
    assert target.stat().st_size == pytest.approx(dumped.stat().st_size, rel=0.01)
    subprocess.run([BINDIR / "pg_restore", "-f", os.devnull, target], check=True)


def program(folder: Path, name: str, script: str) -> Path:
    """A folder of the real programs, one of which is replaced by a script."""
    folder.mkdir()
    for found in BINDIR.iterdir():
        (folder / found.name).symlink_to(found)
    (folder / name).unlink()
    (folder / name).write_text(f"#!/bin/bash\nreal={BINDIR / name}\n{script}\n")
    (folder / name).chmod(0o755)
    return folder


def test_no_password_is_on_a_command_line(
    db: Db, dumped: Path, database: str, other: str, tmp_path: Path
) -> None:
    log = f'printf "%s\\n" "$*" >> {tmp_path}/argv; env >> {tmp_path}/env; exec $real "$@"'
    secret = {"password": "secret"}
    for name, words in (
        ("pg_dump", [database, "dump", tmp_path / "again.dump"]),
        ("psql", [other, "restore", dumped]),
    ):
        bindir = program(tmp_path / name, name, log)
        dsn = conninfo.make_conninfo(str(words[0]), **secret)
        assert db(dsn, *words[1:], bindir=bindir).code == 0
    assert "secret" not in (tmp_path / "argv").read_text()
    assert (tmp_path / "env").read_text().count("PGPASSWORD=secret") == 2


def test_a_dump_that_is_killed_leaves_the_older_one(database: str, tmp_path: Path) -> None:
    path = tmp_path / "d.dump"
    path.write_text("old")
    stuck = '[ "$1" = --version ] && exec $real "$@"; for a in "$@"; do case $a in --file=*) '
    stuck += f"echo half > ${{a#--file=}}; echo $$ > {tmp_path}/pid; esac; done; exec sleep 600"
    bindir = program(tmp_path / "bin", "pg_dump", stuck)
    process = subprocess.Popen(
        [sys.executable, "-m", "smithers.cli.main", "db", "dump", path],
        env={
            **os.environ,
            "SMITHERS_DATABASE_URL": database,
            "SMITHERS_PG_BINDIR": str(bindir),
        },
        start_new_session=True,
    )
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert path.read_text() == "old"


def test_a_database_with_runs_is_refused(db: Db, dumped: Path, database: str) -> None:
    before = everything(database)
    told = db(database, "restore", dumped)
    told.refused("DATABASE_NOT_EMPTY")
    assert "SMITHERS_HOME" in told.err
    assert everything(database) == before


def register(dsn: str, pid: int) -> None:
    from smithers.process.identity import host_name

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "select smithers_p1.register_process(jsonb_build_object('kind', 'worker', 'host',"
            " %s::text, 'pid', %s::int, 'uuid', gen_random_uuid(), 'details', '{}'::jsonb), '1h')",
            [host_name(), pid],
        )


def test_living_processes_are_named_and_dead_ones_do_not_count(
    db: Db, dumped: Path, other: str
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    register(other, gone.pid)
    register(other, os.getpid())
    before = everything(other)
    told = db(other, "restore", dumped)
    told.refused("DATABASE_IN_USE")
    assert f"worker {os.getpid()} on" in told.err
    assert everything(other) == before
    with psycopg.connect(other, autocommit=True) as connection:
        connection.execute("delete from smithers.processes where pid = %s", [os.getpid()])
    assert db(other, "restore", dumped).code == 0


def test_what_began_after_the_look_is_seen_under_the_locks(
    dumped: Path, database: str, other: str
) -> None:
    programs = {name: BINDIR / name for name in ("pg_restore", "psql")}
    contents = archive.read_contents(dumped, programs["pg_restore"])
    register(other, os.getpid())
    for dsn, what in ((database, "a run was started"), (other, "process was started")):
        before = everything(dsn)
        with pytest.raises(archive.ArchiveError, match=what):
            archive.load_archive(dsn, programs, contents, server_version=180_000)
        assert everything(dsn) == before


FAULTS = {
    "the reader stops": ('$real "$@" | sed "/Type: TABLE DATA/,\\$d"; exit 1', "DUMP_INVALID"),
    "it is killed": ('$real "$@" | head -c 60000; kill -9 $$', "DUMP_INVALID"),
    "the last statement fails": ("$real \"$@\"; echo 'select 1/0;'", "RESTORE_FAILED"),
    "the first fails": ("echo 'select 1/0;'; $real \"$@\"", "RESTORE_FAILED"),
}


def test_what_fails_half_way_changes_nothing(
    db: Db, dumped: Path, other: str, tmp_path: Path
) -> None:
    look = '[[ "$*" == *--list* || "$*" == *--data-only* ]] && exec $real "$@"'
    before = everything(other)
    for fault, (script, code) in FAULTS.items():
        bindir = program(tmp_path / fault, "pg_restore", f"{look}\n{script}")
        db(other, "restore", dumped, bindir=bindir).refused(code)
        assert everything(other) == before, fault
    assert db(other, "restore", dumped).code == 0


def test_files_that_are_no_dump_of_ours(
    db: Db, dumped: Path, database: str, other: str, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("select 1;")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "cut").write_bytes(dumped.read_bytes()[:50_000])
    foreign = tmp_path / "foreign"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create schema theirs create table t (x int)")
    options = ["--format=custom", f"--file={foreign}"]
    subprocess.run([BINDIR / "pg_dump", *options, database], check=True)
    strange = tmp_path / "strange"
    options = ["--format=custom", f"--file={strange}", "--schema=theirs"]
    subprocess.run([BINDIR / "pg_dump", *options, database], check=True)
    before = everything(other)
    for name in ("text", "empty", "folder", "cut", "foreign", "strange", "absent"):
        db(other, "restore", tmp_path / name).refused("DUMP_INVALID")
    assert everything(other) == before


def test_dumps_of_later_releases_and_changed_ones_are_refused(
    db: Db, database: str, other: str, tmp_path: Path
) -> None:
    before = everything(other)
    for number, change in enumerate(
        (
            LATER,
            "update smithers.migrations set checksum = 'other' where number = 1",
        )
    ):
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(change.encode())
        path = tmp_path / f"{number}.dump"
        assert db(database, "dump", path).code == 0
        db(other, "restore", path).refused(("SCHEMA_TOO_NEW", "SCHEMA_CHANGED")[number])
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("delete from smithers.migrations where number = 9000")
    assert everything(other) == before


def test_a_schema_that_is_not_ours_is_left_alone(
    db: Db, dumped: Path, empty_database: str, tmp_path: Path
) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("create schema smithers create table runs (x int)")
    db(empty_database, "dump", tmp_path / "x.dump").refused("SCHEMA_MISSING")
    db(empty_database, "restore", dumped).refused("DATABASE_NOT_EMPTY")
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("select count(*) from smithers.runs").fetchone() == (0,)


def test_targets_that_cannot_be_written(
    db: Db, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db(database, "dump", tmp_path).refused("DUMP_FAILED")
    db(database, "dump", tmp_path / "no" / "x.dump").refused("DUMP_FAILED")
    db(database, "dump", "/proc/x.dump").refused("DUMP_FAILED")
    told = db(database, "dump", "--json")
    assert (told.code, "USAGE" in told.err) == (4, True)
    monkeypatch.setattr("smithers.cli.db_dump.is_terminal", lambda _: True)
    db(database, "dump").refused("USAGE")
    assert list(tmp_path.iterdir()) == []


def older_programs() -> Path | None:
    found = [p for p in DEBIAN.glob("*/bin") if OLDEST <= int(p.parent.name) < 18]
    return found[0] if found else None


needs_older = pytest.mark.skipif(older_programs() is None, reason="there is no older Postgres")


@needs_older
def test_programs_older_than_the_server_are_refused(
    db: Db, dumped: Path, database: str, other: str, tmp_path: Path
) -> None:
    old = older_programs()
    assert old is not None
    for words in ((database, "dump", tmp_path / "x.dump"), (other, "restore", dumped)):
        told = db(*words, bindir=old)
        told.refused("PG_PROGRAMS_TOO_OLD")
        assert "SMITHERS_PG_BINDIR" in told.err


@needs_older
@pytest.mark.slow
def test_from_one_major_version_to_another(dumped: Path) -> None:
    """As the hint says; and a dump of a later Postgres is refused by an earlier one."""
    old = older_programs()
    with short_folder() as folder:
        home = folder / ".smithers"
        by_old = {"SMITHERS_PG_BINDIR": str(old)}
        by_new = {"SMITHERS_PG_BINDIR": str(BINDIR)}
        clean = {k: v for k, v in os.environ.items() if not k.startswith("SMITHERS_")}

        def smithers(*words: str | Path, **environ: str) -> Told:
            done = subprocess.run(
                [sys.executable, "-m", "smithers.cli.main", *map(str, words)],
                cwd=folder,
                env={**clean, "SMITHERS_HOME": str(home), **environ},
                capture_output=True,
                text=True,
                check=False,
            )
            return Told(done.returncode, done.stdout, done.stderr)

        try:
            assert smithers("db", "start", **by_old).code == 0
            url = f"postgresql://smithers@/smithers?host={home}/pg"
            later = smithers("db", "restore", dumped, **by_new, SMITHERS_DATABASE_URL=url)
            later.refused("DUMP_TOO_NEW")
            stop_server(home)
            refused = smithers("ps", **by_new)
            refused.refused("DATABASE_UNAVAILABLE")
            assert "smithers db dump FILE" in refused.err
            assert "smithers db restore FILE" in refused.err
            assert smithers("db", "dump", "old.dump", **by_old).code == 0
            stop_server(home)
            (home / "pg").rename(home / "pg.old")
            assert smithers("db", "restore", "old.dump").code == 0
            assert json.loads(smithers("db", "status", "--json").out)["schema"] == "current"
        finally:
            stop_server(home)


@pytest.mark.slow
def test_a_parked_run_goes_on_in_a_fresh_project(tmp_path: Path) -> None:
    """Dumped while it waits for a person, decided and finished elsewhere: nothing runs twice."""
    with short_folder() as folder, ExitStack() as stack:
        old, new = folder / "old", folder / "new"
        for project in (old, new):
            project.mkdir()
            (project / "wf.py").write_text(WORKFLOW)
            stack.callback(stop_server, project / ".smithers")
        here, there = (stack.enter_context(fleet("", project, lease=3.0)) for project in (old, new))
        parked = here.cli("up", "wf.py", "--run-id", "r")
        assert parked.returncode == 3, parked.stderr
        path = str(folder / "d.dump")
        assert here.cli("db", "dump", path).returncode == 0
        restored = there.cli("db", "restore", path)
        assert restored.stdout.startswith("restored 1 run from"), restored.stderr
        assert there.cli("approve", "r", "--no-resume").returncode == 0
        done = there.cli("up", "wf.py", "--run-id", "r", "--resume", "--pinned")
        assert done.returncode == 0, done.stdout + done.stderr
        made = json.loads(there.cli("output", "r", "last", "--json").stdout)
        assert made["text"] == "käse 'n\\t ✓ shipped"
        events = json.loads(there.cli("events", "r", "--json").stdout)
        assert [e["type"] for e in events].count("attempt-finished") == 2
        assert there.cli("verify").returncode == 0
        assert json.loads(here.cli("status", "r", "--json").stdout)["status"] == "waiting-approval"
