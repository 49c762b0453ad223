"""The life of the embedded server: make sure that it runs, stop it, say how it is."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded import user as users
from smithers.sql.embedded.cluster import create_cluster
from smithers.sql.embedded.complaint import complaint
from smithers.sql.embedded.idle import Idle, is_as_wanted, is_watched, read_idle, watch, write_idle
from smithers.sql.embedded.locator import Binaries, find_binaries
from smithers.sql.embedded.lock import locked
from smithers.sql.embedded.place import Place
from smithers.sql.embedded.probe import Answer, ask
from smithers.sql.embedded.processes import process_state, serves, wait_until_gone
from smithers.sql.embedded.spawn import Options, spawn
from smithers.sql.embedded.stale import read_pid, release_stale_locks
from smithers.sql.embedded.user import ServerUser, server_user

START_SECONDS = 10.0
RECOVERY_SECONDS = 300.0
STOP_SECONDS = 30.0
PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How an embedded server is. `url` is there also while it doesn't run.

    `stop_when_idle` is in seconds, 0 for never; `asleep` says that it was stopped for that.
    """

    running: bool
    pid: int | None
    data: Path
    socket_dir: Path
    log: Path
    major: int | None
    url: str
    stop_when_idle: float
    watched: bool
    asleep: bool


def ensure_running(
    home: Path, options: Options | None = None, *, restart_only: bool = False
) -> str:
    """Return the URL of the database in `home`, whose server answers when this returns.

    Any number of processes may call it at once. With `restart_only` a server is started only
    if it died or fell asleep: one that was stopped on purpose, or never made, stays so.
    Raises `DatabaseUnavailable`.
    """
    options = options or Options()
    place = Place(home.absolute())
    place.refuse_if_of_another_user()
    if ask(place) is Answer.READY and is_as_wanted(place, options.stop_when_idle):
        return place.dsn()
    if restart_only and not place.pid_file.exists() and not read_idle(place).asleep:
        raise DatabaseUnavailable(
            f"the embedded database in {place.data} is stopped", hint="smithers db start"
        )
    place.prepare_home()
    with _in_words(place), locked(place):
        if ask(place) is not Answer.READY:
            _make_and_start(place, options)
        remembered = read_idle(place).seconds
        wanted = options.stop_when_idle
        write_idle(place, Idle(remembered if wanted is None else wanted))
        watch(place)
    return place.dsn()


@contextmanager
def _in_words(place: Place) -> Generator[None]:
    """Raise `DatabaseUnavailable` for what the system refuses inside."""
    try:
        yield
    except (OSError, subprocess.SubprocessError) as exc:
        raise DatabaseUnavailable(
            f"the embedded Postgres in {place.data} can't be run: {exc}",
            details={"cause": str(exc), "log": str(place.log)},
            hint="see that the folder can be written and the disk isn't full",
        ) from exc


def _make_and_start(place: Place, options: Options) -> None:
    user = server_user(place)
    binaries = find_binaries(options.bindir, major=place.major)
    if place.major is None:
        create_cluster(place, binaries, user, durable=options.durable)
    _start(place, binaries, user, options)


def _start(place: Place, binaries: Binaries, user: ServerUser, options: Options) -> None:
    """Start until one attempt answers. Children of a killed server hold it up for a moment."""
    place.own_socket_dir(user.uid, user.gid)
    deadline = time.monotonic() + START_SECONDS
    while True:
        pid = read_pid(place)
        if pid is None or not serves(pid, place.data):
            release_stale_locks(place)
            pid = spawn(place, binaries, user, options)
        if _wait_until_ready(place, pid):
            return
        said = users.last_words(place.log)
        passing = any(words in said for words in ("lock file", "shared memory", "already in use"))
        if not passing or time.monotonic() > deadline:
            raise DatabaseUnavailable(
                f"the embedded Postgres in {place.data} doesn't start: {complaint(said.encode())}",
                details={"log": str(place.log), "cause": said, "bindir": str(binaries.bindir)},
                hint=f"see the end of {place.log}",
            )
        time.sleep(10 * PAUSE)


def _wait_until_ready(place: Place, pid: int) -> bool:
    """True when a query was answered, False when the server ended."""
    begun = time.monotonic()
    while True:
        answer = ask(place)
        if answer is Answer.READY:
            return True
        if process_state(pid) != "running":
            return False
        limit = RECOVERY_SECONDS if answer is Answer.STARTING else START_SECONDS
        if time.monotonic() - begun > limit:
            raise DatabaseUnavailable(
                f"the embedded Postgres (pid {pid}) runs, but doesn't answer",
                details={"pid": pid, "log": str(place.log), "answer": answer.value},
                hint=f"see the end of {place.log}",
            )
        time.sleep(PAUSE)


def stop_server(home: Path) -> bool:
    """Stop the server of `home` and wait until it is gone; False when none ran.

    Open transactions are rolled back. It stays stopped until it is started on purpose; whether
    it stops when idle is forgotten. Raises `DatabaseUnavailable` if it won't end.
    """
    place = Place(home.absolute())
    if not place.data.exists():
        return False
    place.refuse_if_of_another_user()
    with _in_words(place), locked(place):
        write_idle(place, Idle())
        pid = read_pid(place)
        if pid is None or not serves(pid, place.data):
            return False
        for how in (signal.SIGINT, signal.SIGQUIT):
            with suppress(ProcessLookupError):
                os.kill(pid, how)
            if wait_until_gone(pid, STOP_SECONDS):
                place.drop_socket_dir()
                return True
    raise DatabaseUnavailable(f"the embedded Postgres (pid {pid}) doesn't stop")


def server_status(home: Path) -> ServerStatus:
    """How the server of `home` is; changes nothing."""
    place = Place(home.absolute())
    place.refuse_if_of_another_user()
    pid = read_pid(place)
    running = pid is not None and serves(pid, place.data) and ask(place) is Answer.READY
    idle = read_idle(place)
    return ServerStatus(
        running=running,
        pid=pid if running else None,
        data=place.data,
        socket_dir=place.socket_dir,
        log=place.log,
        major=place.major,
        url=place.dsn(),
        stop_when_idle=idle.seconds,
        watched=is_watched(place),
        asleep=idle.asleep and not running,
    )
