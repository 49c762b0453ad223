"""Migrating, and refusing schemas that this release doesn't know."""

from __future__ import annotations

import threading

import psycopg
import pytest

from smithers.sql import schema
from smithers.sql.calls import Connection, scalar
from smithers.sql.connect import connect
from smithers.sql.database_errors import SchemaError
from smithers.sql.role_settings import limits_missing
from smithers.sql.schema_files import functions, migrations, parse_migration


def refusal(connection: Connection) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        schema.check(connection)
    return caught.value


def test_an_empty_database_is_refused_until_it_is_migrated(empty_database: str) -> None:
    with connect(empty_database) as connection:
        error = refusal(connection)
        assert (error.code, error.hint) == ("SCHEMA_MISSING", "smithers migrate")
        planned = schema.migrate(connection, plan=True)
        assert planned.migrations == tuple(m.name for m in migrations())
        assert planned.functions
        assert scalar(connection, "select to_regnamespace('smithers')") is None
        assert schema.migrate(connection).changed
        schema.check(connection)
        assert not schema.migrate(connection).changed


def test_new_sessions_have_their_limits(database: str) -> None:
    with connect(database) as connection:
        assert scalar(connection, "show statement_timeout") == "15s"
        assert scalar(connection, "show lock_timeout") == "3s"
        assert scalar(connection, "show idle_in_transaction_session_timeout") == "15s"
        assert limits_missing(connection) == []


def test_migrate_sets_limits_but_keeps_what_an_operator_chose(empty_database: str) -> None:
    with connect(empty_database) as connection:
        assert limits_missing(connection)
        name = connection.info.dbname
        connection.execute(
            f"alter role current_user in database {name} set statement_timeout = '40s'".encode()
        )
        schema.migrate(connection)
    with connect(empty_database) as connection:
        assert scalar(connection, "show statement_timeout") == "40s"
        assert scalar(connection, "show lock_timeout") == "3s"


def test_eight_at_once_migrate_once(empty_database: str) -> None:
    results: list[schema.Migrated] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        with connect(empty_database) as connection:
            barrier.wait()
            results.append(schema.migrate(connection))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.changed for result in results) == [False] * 7 + [True]


def test_a_failed_migration_leaves_nothing(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = parse_migration(
        "9999_broken.sql", b"-- breaking: no\ncreate table smithers.half (x int);\nselect 1/0;\n"
    )
    monkeypatch.setattr(schema, "migrations", lambda: (*migrations(), broken))
    with connect(empty_database) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            schema.migrate(connection)
        assert scalar(connection, "select to_regnamespace('smithers')") is None


@pytest.mark.parametrize("breaking", [True, False])
def test_only_a_breaking_later_migration_is_refused(connection: Connection, breaking: bool) -> None:
    connection.execute(
        "insert into smithers.migrations (number, name, checksum, breaking)"
        " values (9000, '9000_later.sql', 'x', %s)",
        [breaking],
    )
    if not breaking:
        schema.check(connection)
        assert not schema.migrate(connection).changed
        return
    error = refusal(connection)
    assert error.code == "SCHEMA_TOO_NEW"
    assert "9000_later.sql" in error.message
    with pytest.raises(SchemaError):
        schema.migrate(connection)


def test_a_missing_migration_is_outdated(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = parse_migration(
        "9000_later.sql", b"-- breaking: yes\ncreate table smithers.later (x int);\n"
    )
    monkeypatch.setattr(schema, "migrations", lambda: (*migrations(), later))
    error = refusal(connection)
    assert (error.code, error.details["pending"]) == ("SCHEMA_OUTDATED", ["9000_later.sql"])
    assert schema.migrate(connection).migrations == ("9000_later.sql",)
    schema.check(connection)


def test_an_edited_migration_is_refused(connection: Connection) -> None:
    connection.execute("update smithers.migrations set checksum = 'other' where number = 1")
    assert refusal(connection).code == "SCHEMA_CHANGED"
    with pytest.raises(SchemaError):
        schema.migrate(connection)


def test_older_functions_are_replaced_and_later_ones_kept(connection: Connection) -> None:
    connection.execute("update smithers.protocols set checksum = 'x', release = '{0,0,1}'")
    assert refusal(connection).code == "SCHEMA_OUTDATED"
    report = schema.migrate(connection)
    assert (report.migrations, report.functions) == ((), True)
    stored = scalar(connection, "select checksum from smithers.protocols")
    assert stored == functions().checksum
    connection.execute("update smithers.protocols set checksum = 'x', release = '{99,0,0}'")
    schema.check(connection)
    assert not schema.migrate(connection).changed


def test_a_lock_held_by_others_is_named(
    connection: Connection, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "WAIT_FOR_TABLES", "50ms")
    connection.execute("update smithers.protocols set checksum = 'x', release = '{0,0,1}'")
    with connect(database, autocommit=False) as other:
        other.execute("lock table smithers.protocols in access exclusive mode")
        with pytest.raises(SchemaError) as caught:
            schema.migrate(connection)
        assert caught.value.code == "SCHEMA_BUSY"
    assert schema.migrate(connection).functions


@pytest.mark.parametrize("name", ["1_x.sql", "0001-x.sql", "0001_X.sql", "x.sql"])
def test_misnamed_migrations_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="NNNN_name"):
        parse_migration(name, b"-- breaking: no\n")


def test_every_migration_says_whether_it_breaks() -> None:
    with pytest.raises(ValueError, match="breaking"):
        parse_migration("0001_x.sql", b"create table x ();\n")
    numbers = [m.number for m in migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
