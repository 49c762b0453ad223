"""Stop what of a project runs on this host, and remove what it keeps here.

A process is ours when the database knows it by host and pid, or when its environment names the
home folder; its command line must be that of smithers, since a pid may have been used again. The
`smithers up` above a process ends first: it would start again what vanishes.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from smithers.operations.errors import OperationError
from smithers.operations.results import Result
from smithers.operations.session import session_if_running
from smithers.process.identity import host_name
from smithers.process.kill import Tree, kill_tree
from smithers.process.procfs import Proc, environment, processes, variable
from smithers.process.settings import Settings
from smithers.sql import reads
from smithers.sql.embedded import Place, stop_server
from smithers.sql.rows import Json
from smithers.workflow.errors import SmithersError

PURGE_REFUSED: Final = "PURGE_REFUSED"
GRACE_SECONDS: Final = 10.0
_OURS: Final = frozenset({".gitignore", "logs", "sources", "outputs", "demo"})
_ROLES: Final = frozenset({b"scheduler", b"worker", b"supervise", b"up", b"engine"})
_LOOK: Final = 0.05


@dataclass(frozen=True, slots=True)
class Down(Result):
    """What was stopped and removed. `elsewhere` are living processes of other hosts."""

    stopped: list[int]
    killed: list[int]
    database_stopped: bool
    purged: str | None
    elsewhere: list[Json]


def shut_down(settings: Settings, *, grace: float = GRACE_SECONDS, purge: bool = False) -> Down:
    """Ask the processes to end, kill those that live after `grace` seconds, stop the embedded
    database, with `purge` remove the home folder. Creates nothing.

    Raises OperationError (PURGE_REFUSED), before anything is stopped, for a home that holds what
    isn't ours; DatabaseUnavailable when the database won't stop.
    """
    if purge:
        refuse_foreign(settings.home)
    known = _known(settings)
    here = [row for row in known if row["host"] == host_name()]
    leaders = find_leaders(settings.home, [int(row["pid"]) for row in here])
    killed = _end(leaders, grace)
    embedded = settings.database_url is None
    stopped = stop_server(settings.home) if embedded and settings.home.is_dir() else False
    purged = remove_home(settings.home) if purge else None
    return Down(
        stopped=[each.pid for each in leaders if each.pid not in killed],
        killed=killed,
        database_stopped=stopped,
        purged=None if purged is None else str(purged),
        elsewhere=[row for row in known if row["host"] != host_name()],
    )


def find_leaders(home: Path, pids: Collection[int]) -> list[Proc]:
    """The smithers processes that are `pids` or name this home, or the topmost smithers above."""
    everybody = processes()
    found: dict[int, Proc] = {}
    for proc in everybody.values():
        if proc.dead or proc.pid == os.getpid() or not _is_role(proc.pid):
            continue
        named = variable(environment(proc.pid), "SMITHERS_HOME")
        if proc.pid in pids or (named is not None and Path(named) == home):
            leader = _topmost(proc, everybody)
            found[leader.pid] = leader
    return list(found.values())


def refuse_foreign(home: Path) -> None:
    """Raise OperationError (PURGE_REFUSED) unless a home is a folder that holds only our files."""
    if not home.exists() and not home.is_symlink():
        return
    if home.is_symlink() or not home.is_dir():
        raise OperationError(
            PURGE_REFUSED, f"{home} is no folder of its own", hint="remove it yourself"
        )
    foreign = sorted(each.name for each in home.iterdir() if not _is_ours(each.name))
    if foreign:
        raise OperationError(
            PURGE_REFUSED,
            f"{home} holds what isn't Smithers': {', '.join(foreign[:5])}",
            details={"home": str(home), "foreign": foreign},
            hint="move it away, then smithers down --purge again",
        )


def remove_home(home: Path) -> Path | None:
    """Remove a home, and its socket's folder if that lies elsewhere; None when there was none."""
    place = Place(home.absolute())
    if place.socket_dir != place.data:
        shutil.rmtree(place.socket_dir, ignore_errors=True)
    if not home.exists():
        return None
    try:
        shutil.rmtree(home)
    except OSError as error:
        raise OperationError(
            PURGE_REFUSED,
            f"{home} can't be removed: {error.filename}: {error.strerror}",
            details={"home": str(home)},
            hint="remove it as the user whom it belongs to",
        ) from error
    return home


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith(("pg", "smithers-"))


def _known(settings: Settings) -> list[Json]:
    """The living processes that the database knows; none when it doesn't answer."""
    try:
        with session_if_running(settings, purpose="down", seconds=3) as opened:
            return [] if opened is None else reads.read_processes(opened.connection)
    except (SmithersError, psycopg.Error):
        return []


def _is_role(pid: int) -> bool:
    words = _words(pid)
    named = any(b"smithers" in Path(os.fsdecode(word)).name.encode() for word in words[:6])
    return named and not _ROLES.isdisjoint(words)


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _topmost(proc: Proc, everybody: dict[int, Proc]) -> Proc:
    """Climb through what is ours: roles, and the nurseries between them."""
    leader, above = proc, everybody.get(proc.parent)
    while above is not None and above.pid != os.getpid():
        if _is_role(above.pid):
            leader = above
        elif not any(b"nursery_host" in word for word in _words(above.pid)):
            break
        above = everybody.get(above.parent)
    return leader


def _end(leaders: Iterable[Proc], grace: float) -> list[int]:
    """SIGTERM, wait, SIGKILL to the whole tree; give those that had to be killed."""
    waiting = list(leaders)
    for proc in waiting:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(proc.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while waiting and time.monotonic() < deadline:
        time.sleep(_LOOK)
        waiting = [each for each in waiting if _lives(each)]
    for proc in waiting:
        kill_tree(Tree(pid=proc.pid, started=proc.started))
    return [each.pid for each in waiting]


def _lives(proc: Proc) -> bool:
    now = processes().get(proc.pid)
    return now is not None and now.started == proc.started and not now.dead
