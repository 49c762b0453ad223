"""Databases that can't be used: exit 4, one clear line, perhaps a hint, and nothing written."""

from __future__ import annotations

import functools
import socket
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, sql

from smithers.cli.main import run
from smithers.operations import session
from smithers.process.database import open_connection
from smithers.sql.embedded import ensure_running, stop_server
from smithers.sql.embedded.place import Place
from smithers.sql.schema import migrate
from support.homes import FAST, ROOT, short_folder
from support.postgres import TestServer, create_database, migrated_database, throwaway_cluster
from support.runs import start_run
from support.users import NOBODY, as_user, needs_root

Smithers = Callable[..., tuple[int, str, str]]
LATER = (
    "insert into smithers.migrations (number, name, checksum, breaking)"
    " values (9000, '9000_later.sql', 'x', true)"
)


@pytest.fixture
def smithers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Smithers:
    """Runs a command in this process, which waits only a moment for a server that may come up."""
    monkeypatch.chdir(tmp_path)
    quick = functools.partial(open_connection, deadline_seconds=0.3)
    monkeypatch.setattr(session, "open_connection", quick)

    def work(*words: str, **environ: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(f"SMITHERS_{name}", value)
            code = run(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return work


def refused(told: tuple[int, str, str], code: str, *words: str) -> None:
    """It ended with 4, one error line of that code, perhaps a hint, and nothing else."""
    exit_code, out, err = told
    first, *rest = err.splitlines()
    assert (exit_code, out) == (4, ""), told
    assert first.startswith(f"error[{code}]: "), err
    assert len(rest) <= 1, err
    assert all(line.startswith("hint: ") for line in rest), err
    for word in words:
        assert word in err
    assert "secret" not in err


# Servers of somebody else.


@pytest.fixture(scope="module")
def strict() -> Generator[TestServer]:
    """A server with a role that needs a password and may do nothing."""
    with throwaway_cluster() as home:
        rules = home / "pg" / "pg_hba.conf"
        rules.write_text(f"local all stranger scram-sha-256\n{rules.read_text()}")
        server = TestServer(Place(home).dsn("postgres"), "throwaway")
        with server.connection() as connection:
            connection.execute("create role stranger login password 'right'")
            connection.execute("select pg_reload_conf()")
        yield server


@pytest.fixture(scope="module")
def migrated(strict: TestServer) -> Generator[str]:
    """A database as it should be."""
    with migrated_database(strict) as name:
        yield strict.url(name)


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


UNREACHABLE = {
    "wrong password": ({"user": "stranger", "password": "secret"}, "authentication failed"),
    "no password": ({"user": "stranger"}, "no password supplied"),
    "unknown role": ({"user": "ghost"}, "ghost"),
    "unknown database": ({"dbname": "nowhere"}, 'database "nowhere" does not exist'),
    "unknown host": ({"host": "nowhere.invalid", "password": "secret"}, "nowhere.invalid"),
    "no such socket": ({"host": "/nowhere"}, "No such file"),
    "no such certificate": ({"host": "127.0.0.1", "sslrootcert": "/nowhere.crt"}, ""),
    "role without rights": ({"user": "stranger", "password": "right"}, "permission"),
}


@pytest.mark.parametrize("name", UNREACHABLE)
def test_a_server_that_lets_nobody_in(
    name: str, smithers: Smithers, migrated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSFILE", "/nowhere")
    parts, word = UNREACHABLE[name]
    url = conninfo.make_conninfo(migrated, **parts)
    refused(smithers("ps", DATABASE_URL=url), "DATABASE_UNAVAILABLE", word)


def test_a_closed_port(smithers: Smithers) -> None:
    url = f"postgresql://u:secret@127.0.0.1:{closed_port()}/x"
    refused(smithers("ps", DATABASE_URL=url), "DATABASE_UNAVAILABLE", "refused", "127.0.0.1")


@contextmanager
def answering(reply: bytes) -> Generator[int]:
    """A port that refuses TLS and answers whatever else it is asked with one message."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    if client.recv(4096)[4:8] == b"\x04\xd2\x16\x2f":
                        client.sendall(b"N")
                        client.recv(4096)
                    client.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def error_message(code: str, text: str) -> bytes:
    fields = b"".join(
        kind + value.encode() + b"\0"
        for kind, value in ((b"S", "FATAL"), (b"C", code), (b"M", text))
    )
    return b"E" + (len(fields) + 5).to_bytes(4, "big") + fields + b"\0"


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (error_message("08P01", "no such database: x"), "no such database: x"),
        (error_message("08P01", "unsupported startup parameter: options"), "unsupported startup"),
        (error_message("53300", "sorry, too many clients already"), "too many clients"),
        (error_message("57P03", "the database system is in recovery"), "in recovery"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ""),
        (b"", "closed the connection"),
    ],
    ids=["pooler: database", "pooler: parameter", "full", "recovery", "http", "nothing"],
)
def test_what_answers_is_not_what_it_should_be(reply: bytes, word: str, smithers: Smithers) -> None:
    with answering(reply) as port:
        url = f"postgresql://u:secret@127.0.0.1:{port}/x"
        refused(smithers("ps", DATABASE_URL=url), "DATABASE_UNAVAILABLE", word)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("mysql://u:secret@h/x", "SETTING_INVALID"),
        ("h:5432/x", "SETTING_INVALID"),
        ("postgresql://u:secret@h:port/x", "DATABASE_UNAVAILABLE"),
        ("postgresql://u:secret@[::1/x", "DATABASE_UNAVAILABLE"),
        ("postgresql://u:secret@h/x?nonsense=1", "DATABASE_UNAVAILABLE"),
        ("host=h password=secret nonsense", "DATABASE_UNAVAILABLE"),
        ("host=h password='secret", "DATABASE_UNAVAILABLE"),
    ],
)
def test_a_malformed_url(url: str, code: str, smithers: Smithers) -> None:
    refused(smithers("ps", DATABASE_URL=url), code)


# Databases with other tables.


def test_other_tables_than_ours(smithers: Smithers, strict: TestServer) -> None:
    create_database(strict, "plain", None)
    url = strict.url("plain")
    refused(smithers("ps", DATABASE_URL=url), "SCHEMA_MISSING", "hint: smithers migrate")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create schema smithers create table runs (x int)")
    refused(smithers("ps", DATABASE_URL=url), "SCHEMA_MISSING")
    refused(smithers("db", "dump", "x.dump", DATABASE_URL=url), "SCHEMA_MISSING")
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from smithers.runs").fetchone() == (0,)


@pytest.mark.parametrize(
    ("change", "code", "hint"),
    [
        (
            LATER,
            "SCHEMA_TOO_NEW",
            "update smithers-fleet",
        ),
        (
            "update smithers.protocols set checksum = 'x', release = '{0}'",
            "SCHEMA_OUTDATED",
            "smithers migrate",
        ),
        ("update smithers.migrations set checksum = 'x'", "SCHEMA_CHANGED", "release"),
    ],
)
def test_tables_of_another_release(
    change: str, code: str, hint: str, smithers: Smithers, strict: TestServer
) -> None:
    with migrated_database(strict) as name:
        with psycopg.connect(strict.url(name), autocommit=True) as connection:
            connection.execute(change.encode())
        refused(smithers("ps", DATABASE_URL=strict.url(name)), code, hint)


def test_a_server_that_only_reads(smithers: Smithers, strict: TestServer) -> None:
    """As a standby: looking works, what writes is refused."""
    with migrated_database(strict) as name:
        url = strict.url(name)
        with psycopg.connect(url, autocommit=True) as connection:
            start_run(connection, "bad_tasks", {"fault": "none"}, run_id="there")
            query = sql.SQL("alter database {} set default_transaction_read_only = on")
            connection.execute(query.format(sql.Identifier(name)))
        assert smithers("ps", DATABASE_URL=url)[0] == 0
        told = smithers("pause", "there", DATABASE_URL=url)
        refused(told, "DATABASE_UNAVAILABLE", "read-only")


# Embedded databases.


@pytest.fixture
def folder() -> Generator[Path]:
    with short_folder() as found:
        yield found


def listing(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


# What files there are, which settings lead to them (paths below the folder), what is said.
HOMES: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "home is a file": ({".smithers": ""}, {}, "can't be made"),
    "home is below a file": ({"file": ""}, {"HOME": "file/.smithers"}, "can't be made"),
    "no folder of programs": ({}, {"PG_BINDIR": "nowhere"}, "there is no initdb and no postgres"),
    "a folder without initdb": ({"bin/postgres": ""}, {"PG_BINDIR": "bin"}, "there is no initdb"),
    "programs that do not run": (
        {"bin/initdb": "nonsense", "bin/postgres": "nonsense"},
        {"PG_BINDIR": "bin"},
        "doesn't run",
    ),
    "data of another version": ({".smithers/pg/PG_VERSION": "12"}, {}, "Postgres 12"),
    "data of no version": ({".smithers/pg/PG_VERSION": "x"}, {}, "PG_VERSION says 'x'"),
    "data is a file": ({".smithers/pg": ""}, {}, "is in the way"),
    "something else is in the way": ({".smithers/pg/mine": ""}, {}, "is in the way"),
}


@pytest.mark.parametrize("kind", HOMES)
def test_a_home_that_cannot_be_used(kind: str, smithers: Smithers, folder: Path) -> None:
    files, settings, word = HOMES[kind]
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    before = listing(folder)
    paths = {"HOME": ".smithers", **settings}
    told = smithers("ps", **{name: str(folder / path) for name, path in paths.items()})
    refused(told, "DATABASE_UNAVAILABLE", word)
    made = {Path(path).name for path in set(listing(folder)) - set(before)}
    assert made <= {".smithers", ".gitignore", "pg.lock"}


@contextmanager
def mounted(folder: Path, options: str) -> Generator[None]:
    """A file system of its own in a folder, which root can make and no right overrules."""
    line = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if not ROOT or subprocess.run(line, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system can't be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_home_that_cannot_be_written(smithers: Smithers, folder: Path) -> None:
    with mounted(folder, "ro"):
        told = smithers("ps", HOME=str(folder / ".smithers"))
        refused(told, "DATABASE_UNAVAILABLE", "can't be made", "SMITHERS_HOME")
        # One that is there, but whose lock can't be opened.
        refused(smithers("ps", HOME=str(folder)), "DATABASE_UNAVAILABLE")


def test_a_disk_that_is_full(smithers: Smithers, folder: Path) -> None:
    with mounted(folder, "size=8m,mode=0755"):
        told = smithers("ps", HOME=str(folder / ".smithers"))
        refused(told, "DATABASE_UNAVAILABLE", "No space left on device")
        assert not (folder / ".smithers" / "pg.new").exists()
        subprocess.run(["mount", "-o", "remount,size=200m", folder], check=True)
        assert smithers("ps", HOME=str(folder / ".smithers"))[0] == 0  # and goes on with more
        stop_server(folder / ".smithers")


@needs_root
def test_data_of_another_user(smithers: Smithers, folder: Path) -> None:
    home = folder / ".smithers"
    ensure_running(home, FAST)
    stop_server(home)
    assert smithers("ps", HOME=str(home))[0] == 0  # all modules are loaded while we may read them

    def work() -> tuple[int, str, str]:
        return smithers("ps", HOME=str(home))

    told = as_user(NOBODY, work)
    refused((told[0], told[1], told[2]), "DATABASE_UNAVAILABLE", "another user")
    stop_server(home)


def test_a_newer_database_of_ours_is_not_touched(smithers: Smithers, folder: Path) -> None:
    """An embedded one is migrated by every command, but never backwards."""
    home = folder / ".smithers"
    dsn = ensure_running(home, FAST)
    with psycopg.connect(dsn, autocommit=True) as connection:
        migrate(connection)
        connection.execute(LATER.encode())
    refused(smithers("ps", HOME=str(home)), "SCHEMA_TOO_NEW", "9000_later.sql")
    stop_server(home)
