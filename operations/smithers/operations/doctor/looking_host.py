"""Look at this machine. Nothing is created: not even to try whether a folder can be written."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from pathlib import Path

from smithers.operations.doctor.finding import Check, Finding
from smithers.operations.doctor.host import (
    Home,
    Space,
    filesystem_of,
    judge_command,
    judge_disk,
    judge_home,
    judge_limits,
    judge_platform,
    judge_python,
)
from smithers.process.settings import Settings
from smithers.process.version import version
from smithers.sql.embedded import Place
from smithers.sql.embedded.place import LONGEST_SOCKET, PORT

MOUNTS = Path("/proc/mounts")


def machine_checks() -> dict[str, Check]:
    """The checks that need no settings."""
    return {
        "python": lambda: judge_python(sys.version_info[:3], sys.executable),
        "platform": lambda: judge_platform(
            platform.system(), platform.release(), platform.machine()
        ),
        "smithers": _command,
    }


def project_checks(settings: Settings) -> dict[str, Check]:
    """The checks of the places that the settings name."""
    return {
        "home": lambda: judge_home(look_at_home(settings)),
        "disk": lambda: judge_disk(_spaces(settings)),
        "limits": lambda: _limits(settings),
    }


def look_at_home(settings: Settings) -> Home:
    """The facts of the home folder."""
    path = settings.home
    exists = os.path.lexists(path)
    nearest = _nearest(path)
    return Home(
        path=path,
        exists=exists,
        is_folder=path.is_dir(),
        writable=nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK),
        filesystem=filesystem_of(nearest.resolve(), _mounts()),
        holds_database=settings.database_url is None,
    )


def _mounts() -> str:
    try:
        return MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""


def _nearest(path: Path) -> Path:
    """The path, or the nearest above it that is there."""
    return next(each for each in (path, *path.parents) if os.path.lexists(each))


def _spaces(settings: Settings) -> list[Space]:
    """Room at home, for temporary files and the embedded data, each disk once."""
    names = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    temporary = next(filter(None, names), "/tmp")  # noqa: S108 - only looked at
    places = {"home": settings.home, "temporary files": Path(temporary)}
    if settings.database_url is None:
        places["data"] = Place(settings.home).data
    found: dict[int, Space] = {}
    for purpose, path in places.items():
        nearest = _nearest(path.absolute())
        usage = shutil.disk_usage(nearest)
        found.setdefault(nearest.stat().st_dev, Space(purpose, path, usage.free, usage.total))
    return list(found.values())


def _limits(settings: Settings) -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    socket = None
    if settings.database_url is None:
        socket = len(os.fsencode(Place(settings.home).data / f".s.PGSQL.{PORT}"))
    return judge_limits(None if soft == resource.RLIM_INFINITY else soft, socket, LONGEST_SOCKET)


def _command() -> Finding:
    found = shutil.which("smithers")
    on_path = None if found is None else Path(found)
    ours = Path(sys.executable).parent
    same = on_path is not None and _is_ours(on_path, ours)
    return judge_command(version(), on_path, ours, same=same)


def _is_ours(script: Path, ours: Path) -> bool:
    """Whether a script lies beside our Python, or is run by it."""
    if script.resolve().parent == ours.resolve():
        return True
    try:
        with script.open("rb") as file:
            first = file.readline(4096)
    except OSError:
        return False
    words = first.removeprefix(b"#!").split()
    return first.startswith(b"#!") and bool(words) and os.fsdecode(words[0]) == sys.executable
