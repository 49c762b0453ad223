"""Reaching a database: what is tried again, what is refused at once, and in which words."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from smithers.process.database import open_connection
from smithers.process.settings import load_settings
from smithers.sql.calls import scalar
from smithers.sql.connect import Database, connect, open_pool, reached, resolve_database
from smithers.sql.database_errors import DatabaseUnavailable, SchemaError
from smithers.sql.embedded import stop_server
from support.users import NOBODY, needs_root


def test_a_connection_is_in_autocommit_and_watches_its_peer(database: str) -> None:
    with connect(database, application_name="a test") as connection:
        assert connection.autocommit
        assert connection.prepare_threshold == 5
        assert scalar(connection, "show application_name") == "a test"
        parameters = connection.info.get_parameters()
        assert parameters["keepalives_idle"] == "10"
        assert parameters["tcp_user_timeout"] == "20000"


def test_behind_a_pooler_nothing_is_prepared(database: str) -> None:
    with connect(Database(database, pooled=True)) as connection:
        assert connection.prepare_threshold is None
        for _ in range(12):
            connection.execute("select %s::int", [1])
        assert scalar(connection, "select count(*) from pg_prepared_statements") == 0


def test_what_the_url_says_is_kept(database: str) -> None:
    dsn = conninfo.make_conninfo(database, keepalives_idle=99)
    with connect(dsn) as connection:
        assert connection.info.get_parameters()["keepalives_idle"] == "99"


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_refused_connection_is_tried_until_the_deadline() -> None:
    begun = time.monotonic()
    with pytest.raises(DatabaseUnavailable) as caught:
        connect(f"postgresql://u:secret@127.0.0.1:{closed_port()}/x", deadline_seconds=0.5)
    assert time.monotonic() - begun >= 0.4
    assert caught.value.code == "DATABASE_UNAVAILABLE"
    assert "Connection refused" in caught.value.message
    assert "secret" not in caught.value.message
    assert "\n" not in caught.value.message


def test_a_server_that_comes_up_meanwhile_is_reached(database: str) -> None:
    """A port that refuses at first, then leads to the server."""
    port = closed_port()
    target = conninfo.conninfo_to_dict(database)
    if not str(target.get("host", "")).startswith("/"):
        pytest.skip("the server isn't on a socket")

    def forward() -> None:
        with socket.create_server(("127.0.0.1", port)) as listener:
            client, _ = listener.accept()
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(f"{target['host']}/.s.PGSQL.{target.get('port', 5432)}")
            back = threading.Thread(target=pump, args=(server, client))
            back.start()
            pump(client, server)
            back.join()

    timer = threading.Timer(0.3, forward)
    timer.start()
    dsn = conninfo.make_conninfo(database, host="127.0.0.1", port=port, sslmode="disable")
    with connect(dsn, deadline_seconds=20) as connection:
        assert scalar(connection, "select 1") == 1
    timer.join()


def pump(source: socket.socket, sink: socket.socket) -> None:
    while data := source.recv(65536):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"dbname": "no_such_db"}, "does not exist"), ({"user": "no_such_role"}, "no_such_role")],
)
def test_what_cannot_pass_is_refused_at_once(
    database: str, change: dict[str, str], words: str
) -> None:
    begun = time.monotonic()
    with pytest.raises(DatabaseUnavailable, match=words):
        connect(conninfo.make_conninfo(database, **change), deadline_seconds=60)
    assert time.monotonic() - begun < 20


def test_a_malformed_url_is_refused() -> None:
    with pytest.raises(DatabaseUnavailable):
        connect("postgresql://127.0.0.1:notaport/x", deadline_seconds=60)
    with pytest.raises(DatabaseUnavailable):
        connect("host=h nonsense=1", deadline_seconds=60)


def test_a_pool_replaces_connections_that_died(database: str) -> None:
    with open_pool(database, max_size=2) as pool:
        with pool.connection() as connection:
            assert connection.autocommit
            pid = connection.info.backend_pid
        with connect(database) as other:
            other.execute("select pg_terminate_backend(%s, 5000)", [pid])
        with pool.connection() as connection:
            assert scalar(connection, "select 1") == 1
            assert connection.info.backend_pid != pid


def test_a_lost_connection_is_unavailable_other_errors_are_themselves(database: str) -> None:
    target = Database(database)
    with connect(database) as connection, connect(database) as other:
        with pytest.raises(psycopg.errors.QueryCanceled), reached(target):
            connection.execute("set statement_timeout = '20ms'; select pg_sleep(5)")
        other.execute("select pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
        with pytest.raises(DatabaseUnavailable), reached(target):
            connection.execute("select 1")


def test_a_given_database_is_not_migrated_behind_ones_back(
    empty_database: str, tmp_path: Path
) -> None:
    settings = load_settings(environ={"SMITHERS_DATABASE_URL": empty_database}, cwd=tmp_path)
    with pytest.raises(SchemaError) as caught:
        open_connection(settings)
    assert caught.value.code == "SCHEMA_MISSING"
    assert not (tmp_path / ".smithers").exists()


def test_an_embedded_database_is_made_and_migrated_on_the_way(tmp_path: Path) -> None:
    settings = load_settings(environ={}, cwd=tmp_path)
    database, connection = open_connection(settings)
    with connection:
        assert database.embedded
        assert scalar(connection, "select count(*) from smithers.runs") == 0
        assert scalar(connection, "show statement_timeout") == "15s"
    stop_server(settings.home)


@needs_root
def test_a_folder_of_another_user_is_used_only_if_named(tmp_path: Path) -> None:
    home = tmp_path / ".smithers"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    with pytest.raises(DatabaseUnavailable) as caught:
        open_connection(load_settings(environ={}, cwd=tmp_path))
    assert "belongs to another user" in caught.value.message
    named = load_settings(environ={"SMITHERS_HOME": str(home)}, cwd=tmp_path)
    _, connection = open_connection(named)
    connection.close()
    assert (home / "pg").stat().st_uid == NOBODY
    stop_server(home)


def test_the_given_server_wins_over_a_folder(database: str, tmp_path: Path) -> None:
    found = resolve_database(database, tmp_path / ".smithers")
    assert not found.embedded
    assert not (tmp_path / ".smithers").exists()
