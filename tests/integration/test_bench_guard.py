"""The counted figures stay below their recorded limits."""

from __future__ import annotations

import sys
from pathlib import Path

from smithers.sql.embedded import Place
from support.postgres import TestServer, database_on, throwaway_cluster


def test_nothing_is_above_its_recorded_limit() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from bench import guard

    with throwaway_cluster(full_page_writes="off", autovacuum="off") as home:
        server = TestServer(Place(home).dsn("postgres"), "throwaway")
        with database_on(server, None) as name:
            measured = guard.measure(server.url(name))
    assert guard.judge(measured) == []
