"""Home folders with embedded servers: made, started by other processes, crashed, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from smithers.sql.embedded import Options, server_status, stop_server
from smithers.sql.embedded.processes import process_state
from support.waiting import until

FAST = Options(durable=False)
ROOT = os.geteuid() == 0

NewHome = Callable[..., Path]


@contextmanager
def short_folder() -> Generator[Path]:
    """A folder whose path is short: a socket's name has room for 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="st-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextmanager
def homes_below(folder: Path) -> Generator[NewHome]:
    """Makes home folders whose servers are stopped afterwards."""
    homes: list[Path] = []

    def make(*names: str, below: Path = folder) -> Path:
        project = below.joinpath(*(names or ("project",)))
        project.mkdir(parents=True, exist_ok=True)
        homes.append(project / ".smithers")
        return homes[-1]

    try:
        yield make
    finally:
        for home in homes:
            stop_server(home)


def answer(dsn: str, query: str = "select 42") -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def do(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def pid_of(home: Path) -> int:
    pid = server_status(home).pid
    assert pid is not None
    return pid


def starter(home: Path) -> subprocess.Popen[str]:
    """A process of its own that makes sure that the server runs, and prints its pid."""
    code = (
        "import sys; from pathlib import Path; from smithers.sql.embedded import *;"
        "home = Path(sys.argv[1]); ensure_running(home, Options(durable=False));"
        "print(server_status(home).pid)"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def crash(home: Path) -> int:
    """End the server so that its lock files stay; gives its pid."""
    pid = pid_of(home)
    os.kill(pid, signal.SIGKILL)
    until(lambda: process_state(pid) != "running")
    return pid


def replace_pid(path: Path, pid: int) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([f"{pid}\n", *lines[1:]]))


def run_as_owner(home: Path, *line: str) -> subprocess.Popen[bytes]:
    """A process of the server's user, which Postgres would take for the server."""
    owner = (home / "pg").stat()
    if not ROOT:
        return subprocess.Popen(line)
    return subprocess.Popen(line, user=owner.st_uid, group=owner.st_gid, extra_groups=[])
