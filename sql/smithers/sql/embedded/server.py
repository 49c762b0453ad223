"""The life of the embedded server: make sure that it runs, stop it, say how it is."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.embedded import user as users
from smithers.sql.embedded.cluster import create_cluster
from smithers.sql.embedded.locator import Binaries, find_binaries
from smithers.sql.embedded.place import Place
from smithers.sql.embedded.probe import Answer, ask
from smithers.sql.embedded.processes import process_state, serves
from smithers.sql.embedded.stale import read_pid, release_stale_locks
from smithers.sql.embedded.user import ServerUser, server_user

LOCK_SECONDS = 120.0
START_SECONDS = 10.0
RECOVERY_SECONDS = 300.0
STOP_SECONDS = 30.0
PAUSE = 0.02
LARGEST_LOG = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """How a server is run. `durable=False` is for tests: a crash of the machine loses data."""

    bindir: Path | None = None
    max_connections: int = 100
    durable: bool = True
    die_with_parent: bool = False
    settings: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How an embedded server is. `url` is there also while it doesn't run."""

    running: bool
    pid: int | None
    data: Path
    socket_dir: Path
    log: Path
    major: int | None
    url: str


def ensure_running(
    home: Path, options: Options | None = None, *, restart_only: bool = False
) -> str:
    """Return the URL of the database in `home`, whose server answers when this returns.

    Any number of processes may call it at once. With `restart_only` a server is started only
    if it died: one that was stopped on purpose, or never made, stays so.
    Raises `DatabaseUnavailable`.
    """
    options = options or Options()
    place = Place(home.absolute())
    place.refuse_if_of_another_user()
    if ask(place) is Answer.READY:
        return place.dsn()
    if restart_only and not place.pid_file.exists():
        raise DatabaseUnavailable(
            f"the embedded database in {place.data} is stopped", hint="smithers db start"
        )
    place.prepare_home()
    try:
        with _locked(place):
            if ask(place) is not Answer.READY:
                _make_and_start(place, options)
    except (OSError, subprocess.SubprocessError) as exc:
        raise DatabaseUnavailable(
            f"the embedded Postgres in {place.data} can't be run: {exc}",
            details={"cause": str(exc), "log": str(place.log)},
            hint="see that the folder can be written and the disk isn't full",
        ) from exc
    return place.dsn()


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
            pid = _spawn(place, binaries, user, options)
        if _wait_until_ready(place, pid):
            return
        said = users.last_words(place.log)
        passing = any(words in said for words in ("lock file", "shared memory", "already in use"))
        if not passing or time.monotonic() > deadline:
            raise DatabaseUnavailable(
                f"the embedded Postgres in {place.data} doesn't start",
                details={"log": str(place.log), "cause": said, "bindir": str(binaries.bindir)},
                hint=f"see the end of {place.log}",
            )
        time.sleep(10 * PAUSE)


def _spawn(place: Place, binaries: Binaries, user: ServerUser, options: Options) -> int:
    """Start the server and return its pid; it may end at once."""
    program = binaries.program("postgres")
    line = users.command(
        user,
        [program, "-D", place.data, *_settings(place, options)],
        "--die-with-parent" if options.die_with_parent else "--detach",
        reach=(place.data, program, place.socket_dir),
    )
    if place.log.exists() and place.log.stat().st_size > LARGEST_LOG:
        place.log.replace(place.log.with_suffix(".log.1"))
    with place.log.open("ab") as log:
        place.log.chmod(0o600)
        if options.die_with_parent:
            return _spawn_child(line, log.fileno())
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=users.environment(),
            check=True,
        )
    return int(done.stdout)


def _spawn_child(line: list[str], log: int) -> int:
    """Start a child by its pid alone; when it ends it may stay a zombie as long as we live."""
    return os.posix_spawn(
        line[0],
        line,
        users.environment(),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
        ],
        setpgroup=0,
    )


def _settings(place: Place, options: Options) -> list[str]:
    quoted = str(place.socket_dir).replace('"', '""')
    chosen = {
        "listen_addresses": "",
        "unix_socket_directories": f'"{quoted}"',
        "unix_socket_permissions": "0700",
        "max_connections": str(options.max_connections),
        "shared_buffers": "64MB",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_checkpoints": "off",
        "cluster_name": "smithers",
        **({} if options.durable else {"fsync": "off", "full_page_writes": "off"}),
        **options.settings,
    }
    return [part for name, value in chosen.items() for part in ("-c", f"{name}={value}")]


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

    Open transactions are rolled back. Raises `DatabaseUnavailable` if it won't end.
    """
    place = Place(home.absolute())
    if not place.data.exists():
        return False
    place.refuse_if_of_another_user()
    with _locked(place):
        pid = read_pid(place)
        if pid is None or not serves(pid, place.data):
            return False
        for how in (signal.SIGINT, signal.SIGQUIT):
            with suppress(ProcessLookupError):
                os.kill(pid, how)
            if _wait_until_gone(pid, STOP_SECONDS):
                place.drop_socket_dir()
                return True
    raise DatabaseUnavailable(f"the embedded Postgres (pid {pid}) doesn't stop")


def _wait_until_gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process_state(pid) == "running":
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE)
    return True


def server_status(home: Path) -> ServerStatus:
    """How the server of `home` is; changes nothing."""
    place = Place(home.absolute())
    place.refuse_if_of_another_user()
    pid = read_pid(place)
    running = pid is not None and serves(pid, place.data) and ask(place) is Answer.READY
    return ServerStatus(
        running=running,
        pid=pid if running else None,
        data=place.data,
        socket_dir=place.socket_dir,
        log=place.log,
        major=place.major,
        url=place.dsn(),
    )


@contextmanager
def _locked(place: Place) -> Generator[None]:
    """Hold the lock of this place; a process that dies gives it up."""
    deadline = time.monotonic() + LOCK_SECONDS
    with place.lock.open("ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DatabaseUnavailable(
                        f"{place.lock} is held by another process for {LOCK_SECONDS:g} s"
                    ) from None
                time.sleep(PAUSE)
        yield
