"""A Postgres for the tests, and a fresh migrated database for each of them.

The server is SMITHERS_TEST_DSN if set, else a container if a Docker engine answers, else a
throwaway cluster from local binaries that ends with the test session, however that ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg
from psycopg import conninfo, sql

from smithers.sql.calls import Connection
from smithers.sql.embedded import Options, Place, ensure_running, stop_server
from smithers.sql.role_settings import LIMITS
from smithers.sql.schema import migrate
from support.moves import refuse_illegal_moves

IMAGE = "postgres:18"


@dataclass(frozen=True)
class TestServer:
    """A server on which databases may be made; `dsn` is one with the right to make them."""

    __test__ = False

    dsn: str
    kind: str

    def url(self, database: str) -> str:
        """The DSN of another database on this server."""
        return conninfo.make_conninfo(self.dsn, dbname=database)

    @contextmanager
    def connection(self) -> Generator[Connection]:
        """A connection for making and dropping databases."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            yield connection


@contextmanager
def test_server() -> Generator[TestServer]:
    """The server of this session, gone afterwards if it was started for it."""
    if given := os.environ.get("SMITHERS_TEST_DSN"):
        yield TestServer(given, "given")
    elif docker_answers():
        with _container() as dsn:
            yield TestServer(dsn, "container")
    else:
        with throwaway_cluster() as home:
            yield TestServer(Place(home).dsn("postgres"), "throwaway")


def docker_answers() -> bool:
    """Whether a Docker engine is there to start a container with."""
    host = os.environ.get("DOCKER_HOST", "")
    if not host and not Path("/var/run/docker.sock").exists():
        return False
    done = shutil.which("docker")
    if done is None:
        return bool(host)
    import subprocess

    try:
        asked = subprocess.run([done, "info"], capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


@contextmanager
def _container() -> Generator[str]:
    from testcontainers.community.postgres import PostgresContainer

    command = "postgres -c fsync=off -c max_connections=200"
    with PostgresContainer(IMAGE, driver=None).with_command(command) as container:
        yield container.get_connection_url()


@contextmanager
def throwaway_cluster(**settings: str) -> Generator[Path]:
    """A home folder with a running embedded server that loses its data in a power cut."""
    home = Path(tempfile.mkdtemp(prefix="smithers-test-"))
    home.chmod(0o755)
    options = Options(
        durable=False,
        max_connections=200,
        die_with_parent=True,
        settings={"synchronous_commit": "off", **settings},
    )
    try:
        ensure_running(home, options)
        yield home
    finally:
        stop_server(home)
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def template_database(server: TestServer) -> Generator[str]:
    """A migrated database to copy from, which refuses illegal moves; nobody may connect to it."""
    with migrated_database(server) as name:
        with psycopg.connect(server.url(name), autocommit=True) as connection:
            refuse_illegal_moves(connection)
        yield name


@contextmanager
def migrated_database(server: TestServer) -> Generator[str]:
    """A database as `smithers migrate` leaves it."""
    with database_on(server, template=None) as name:
        with psycopg.connect(server.url(name), autocommit=True) as connection:
            migrate(connection)
        yield name


@contextmanager
def database_on(server: TestServer, template: str | None) -> Generator[str]:
    """The name of a fresh database, dropped afterwards with everybody's connections."""
    name = f"smithers_test_{uuid.uuid4().hex[:12]}"
    create_database(server, name, template)
    try:
        yield name
    finally:
        with server.connection() as connection:
            connection.execute(
                sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            )


def create_database(server: TestServer, name: str, template: str | None) -> None:
    """Make a database; role settings aren't copied with a template, so a copy is given ours."""
    with server.connection() as connection:
        new = sql.Identifier(name)
        connection.execute(
            sql.SQL("create database {} template {}").format(
                new, sql.Identifier(template or "template0")
            )
        )
        for setting, value in LIMITS.items() if template else ():
            connection.execute(
                sql.SQL("alter role current_user in database {} set {} = {}").format(
                    new, sql.Identifier(setting), value
                )
            )


def shift_clock(dsn: str, offset: timedelta) -> None:
    """Move `smithers.now()` of a database for every session that connects from now on."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(
            sql.SQL("alter database {} set smithers.clock_offset = {}").format(
                sql.Identifier(name), f"{offset.total_seconds()} seconds"
            )
        )
