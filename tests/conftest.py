"""What every test may ask for."""

from __future__ import annotations

import os
from collections.abc import Generator

import psycopg
import pytest

from smithers.sql.calls import Connection
from support import postgres
from support.postgres import TestServer


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_outside() -> None:
    """A developer's own settings must not change what the tests see."""
    for name in list(os.environ):
        if name.startswith("SMITHERS_") and name != "SMITHERS_TEST_DSN":
            del os.environ[name]


@pytest.fixture(scope="session")
def server() -> Generator[TestServer]:
    """The Postgres server of the session."""
    with postgres.test_server() as found:
        yield found


@pytest.fixture(scope="session")
def template(server: TestServer) -> Generator[str]:
    """The name of a migrated database to copy from."""
    with postgres.template_database(server) as name:
        yield name


@pytest.fixture
def database(server: TestServer, template: str) -> Generator[str]:
    """The DSN of a fresh, migrated database of this test's own."""
    with postgres.database_on(server, template) as name:
        yield server.url(name)


@pytest.fixture
def empty_database(server: TestServer) -> Generator[str]:
    """The DSN of a fresh database without our tables."""
    with postgres.database_on(server, None) as name:
        yield server.url(name)


@pytest.fixture
def connection(database: str) -> Generator[Connection]:
    """An autocommit connection to `database`."""
    with psycopg.connect(database, autocommit=True) as opened:
        yield opened
