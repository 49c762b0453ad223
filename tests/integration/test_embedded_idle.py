"""A server that stops when nobody uses it, and the process that watches it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from smithers.sql.connect import Database, connect
from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded import Options, ensure_running, server_status, stop_server
from smithers.sql.embedded.idle import WATCHER, read_idle
from smithers.sql.embedded.place import Place
from smithers.sql.embedded.processes import process_state
from support.homes import answer, crash, homes_below, pid_of, short_folder
from support.waiting import until

SOON = Options(durable=False, stop_when_idle=0.3)
LATER = Options(durable=False, stop_when_idle=3600)
NEVER = Options(durable=False, stop_when_idle=0)
AS_BEFORE = Options(durable=False)


@pytest.fixture(scope="module")
def made() -> Generator[Path]:
    """One home for all tests here: to make a data directory takes the most time."""
    with short_folder() as folder, homes_below(folder) as make:
        home = make()
        ensure_running(home, AS_BEFORE)
        yield home


@pytest.fixture
def home(made: Path) -> Path:
    """A home whose server is stopped and forgot what it was told."""
    stop_server(made)
    until(lambda: not watchers(made))
    return made


def watchers(home: Path) -> list[int]:
    """The pids of the living watchers of a home."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if WATCHER.encode() in words and os.fsencode(home) in words:
            found.append(int(entry.name))
    return found


def one_watcher(home: Path) -> int:
    """The pid of the watcher, once it is at work."""
    until(lambda: server_status(home).watched)
    (pid,) = until(lambda: watchers(home))
    return pid


def looks(connection: psycopg.Connection, enough: int) -> None:
    """Return when the watcher has looked so many times more."""
    seen: set[object] = set()

    def look() -> bool:
        row = connection.execute(
            "select query_start from pg_stat_activity"
            " where application_name = 'smithers idle watcher'"
        ).fetchone()
        seen.add(row)
        return len(seen) > enough

    until(look)


def asleep(home: Path) -> bool:
    """Whether it has fallen asleep; asking the server would wake it up."""
    place = Place(home)
    return read_idle(place).asleep and not place.pid_file.exists()


def test_it_stops_when_nobody_is_connected_and_the_next_who_needs_it_wakes_it(home: Path) -> None:
    database = Database(ensure_running(home, SOON), home=home, options=AS_BEFORE)
    with connect(database) as client:
        looks(client, 8)  # 8 x 0.1 s: longer than it would take without a client
        assert pid_of(home)
    until(lambda: asleep(home))
    until(lambda: not watchers(home))
    assert "nobody was connected" in (home / "pg.log").read_text()
    with connect(database) as client:
        assert answer(database.dsn) == 42
        status = server_status(home)
        assert (status.stop_when_idle, status.asleep) == (0.3, False)
    until(lambda: asleep(home))


def test_short_visits_keep_it_awake_and_none_is_refused(home: Path) -> None:
    """Whoever comes in the moment in which it stops is served as well."""
    database = Database(ensure_running(home, SOON), home=home, options=AS_BEFORE)
    starts = set()
    for _ in range(3):
        for _ in range(5):
            with connect(database) as client:
                client.execute("select 1")
            ensure_running(home, AS_BEFORE)
            starts.add(pid_of(home))
        until(lambda: read_idle(Place(home)).asleep, pause=0.001)  # and about to stop
    assert len(starts) == 3


def test_its_watcher_may_be_killed(home: Path) -> None:
    dsn = ensure_running(home, LATER)
    first = one_watcher(home)
    os.kill(first, signal.SIGKILL)
    until(lambda: process_state(first) != "running")
    assert answer(dsn) == 42
    assert not server_status(home).watched
    ensure_running(home, AS_BEFORE)  # any command
    assert one_watcher(home) != first


def test_there_are_never_two_watchers(home: Path) -> None:
    ensure_running(home, LATER)
    first = one_watcher(home)
    line = [sys.executable, "-m", WATCHER, str(home)]
    second = subprocess.run(line, timeout=30, check=True)
    assert second.returncode == 0
    assert watchers(home) == [first]


def test_no_watcher_outlives_its_server(home: Path) -> None:
    ensure_running(home, SOON)
    pid = one_watcher(home)
    crash(home)
    until(lambda: process_state(pid) != "running", seconds=10)
    assert not server_status(home).asleep
    assert answer(ensure_running(home, LATER)) == 42  # a server that lives on has its own
    pid = one_watcher(home)
    stop_server(home)
    ensure_running(home, SOON)
    with psycopg.connect(server_status(home).url, autocommit=True) as client:
        looks(client, 2)
    assert len(watchers(home)) == 1


def test_who_stops_it_on_purpose_stops_it_for_good(home: Path) -> None:
    database = Database(ensure_running(home, SOON), home=home, options=AS_BEFORE)
    until(lambda: asleep(home))
    assert stop_server(home) is False
    with pytest.raises(DatabaseUnavailable, match="is stopped"):
        connect(database, deadline_seconds=0.1)
    ensure_running(home, AS_BEFORE)
    status = server_status(home)
    assert (status.running, status.stop_when_idle, status.watched) == (True, 0, False)


def test_it_can_be_told_to_stay(home: Path) -> None:
    ensure_running(home, SOON)
    pid = one_watcher(home)
    ensure_running(home, NEVER)
    until(lambda: process_state(pid) != "running", seconds=10)
    assert server_status(home).running


def test_a_project_that_is_removed_takes_its_watcher_along(home: Path) -> None:
    ensure_running(home, SOON)
    pid = one_watcher(home)
    with psycopg.connect(server_status(home).url):
        moved = home.parent.with_name("moved")
        home.parent.rename(moved)
        until(lambda: process_state(pid) != "running", seconds=10)
    moved.rename(home.parent)
