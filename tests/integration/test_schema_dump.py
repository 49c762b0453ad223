"""docs/schema.sql says what the migrations make."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from support.postgres import TestServer, migrated_database
from support.schema_dump import MAJOR, dump

DUMP = Path(__file__).parents[2] / "docs" / "schema.sql"


def test_the_committed_schema_is_current(server: TestServer) -> None:
    with psycopg.connect(server.dsn) as connection:
        if connection.info.server_version // 10_000 != MAJOR:
            pytest.skip(f"the dump is made on Postgres {MAJOR}; other versions write it otherwise")
    with migrated_database(server) as database:
        assert DUMP.read_text("utf-8") == dump(server, database), "run `make schema`"
