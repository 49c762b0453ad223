"""The servers that tests may run on."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from smithers.sql.calls import scalar
from support import postgres
from support.postgres import shift_clock


@pytest.mark.slow
@pytest.mark.skipif(not postgres.docker_answers(), reason="no Docker engine answers")
def test_a_container_can_serve_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMITHERS_TEST_DSN", raising=False)
    with postgres.test_server() as server, postgres.template_database(server) as name:
        assert server.kind == "container"
        with psycopg.connect(server.url(name)) as connection:
            assert scalar(connection, "select count(*) from smithers.runs") == 0


def test_the_clock_of_a_database_can_be_shifted(database: str) -> None:
    shift_clock(database, timedelta(hours=3))
    with psycopg.connect(database) as connection:
        ahead = scalar(connection, "select smithers.now() - now() between '2:59:59' and '3:00:01'")
    assert ahead is True


def test_databases_are_gone_after_their_test(server: postgres.TestServer, template: str) -> None:
    with postgres.database_on(server, template) as name:
        leaked = psycopg.connect(server.url(name))
    with server.connection() as connection:
        found = scalar(connection, "select count(*) from pg_database where datname = %s", name)
    assert found == 0
    leaked.close()
