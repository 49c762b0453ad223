"""What idle processes cost: counted by Postgres itself, one database for each role."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from smithers.sql.calls import Connection
from smithers.sql.embedded import Place
from smithers.sql.schema import migrate
from support.fleet import ROLES, fleet
from support.postgres import TestServer, create_database, throwaway_cluster
from support.runs import connect
from support.waiting import until

WINDOW_SECONDS = 14
MOST_PER_SECOND = 0.5
MARKS = ("begin", "commit", "set", "show", "listen", "unlisten")


@pytest.mark.slow
def test_an_idle_process_costs_a_query_in_two_seconds(tmp_path: Path) -> None:
    """With the default lease; BEGIN, COMMIT and the like aren't queries, but are in the message."""
    with ExitStack() as stack:
        home = stack.enter_context(
            throwaway_cluster(
                shared_preload_libraries="pg_stat_statements",
                **{"pg_stat_statements.track": "top"},
            )
        )
        server = TestServer(Place(home).dsn("postgres"), "throwaway")
        with server.connection() as connection:
            connection.execute("create extension pg_stat_statements")
        for role in ROLES:
            create_database(server, role, None)
            with connect(server.url(role)) as connection:
                migrate(connection)
            folder = tmp_path / role
            folder.mkdir()
            whole = stack.enter_context(fleet(server.url(role), folder, [role], lease=30.0))
            until(partial(started, whole.members[0].log), seconds=30)
        with server.connection() as connection:
            for role in ROLES:
                settle(connection, role)
            before = {role: calls(connection, role) for role in ROLES}
            since = clock(connection)
            until(lambda: clock(connection) - since >= WINDOW_SECONDS, seconds=60, pause=0.5)
            after = {role: calls(connection, role) for role in ROLES}
            took = clock(connection) - since
        for role in ROLES:
            spent = {
                text: number - before[role].get(text, 0)
                for text, number in after[role].items()
                if number > before[role].get(text, 0)
            }
            queries = sum(
                number for text, number in spent.items() if text.split()[0].lower() not in MARKS
            )
            assert 0 < queries <= MOST_PER_SECOND * took, (role, took, spent)


def started(log: Path) -> bool:
    """Whether a process has said that it serves."""
    return b"started" in log.read_bytes()


def calls(connection: Connection, database: str) -> dict[str, int]:
    """How often each statement was executed in a database."""
    found = connection.execute(
        "select s.query, sum(s.calls) from pg_stat_statements s"
        " join pg_database d on d.oid = s.dbid where d.datname = %s group by 1",
        [database],
    )
    return {str(text): int(number) for text, number in found.fetchall()}


def settle(connection: Connection, database: str) -> None:
    """Wait until nothing has been executed for two seconds: the start is over."""
    seen = (sum(calls(connection, database).values()), clock(connection))

    def quiet() -> bool:
        nonlocal seen
        total, now = sum(calls(connection, database).values()), clock(connection)
        if total != seen[0]:
            seen = (total, now)
        return now - seen[1] >= 2

    until(quiet, seconds=60, pause=0.1)


def clock(connection: Connection) -> float:
    """The database's time in seconds."""
    row = connection.execute("select extract(epoch from clock_timestamp())").fetchone()
    assert row is not None
    return float(row[0])
