"""Judge this machine: Python, platform, our command, the home folder, disks, limits. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smithers.operations.doctor.finding import Finding, State

OLDEST_PYTHON: Final = (3, 11)
LITTLE_SPACE: Final = 0.15
NO_SPACE: Final = 0.05
FEW_FILES: Final = 1024
TOO_FEW_FILES: Final = 128
_FUSED: Final = ("sshfs", "s3fs", "rclone", "glusterfs", "ceph", "davfs2")
NETWORK: Final = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smbfs", "smb3", "ncpfs", "afs", "ceph", "lustre"),
        *("glusterfs", "beegfs", "9p", "vboxsf", "davfs"),
        *(f"fuse.{name}" for name in _FUSED),
    )
)
"""File systems on which a database loses data or locks, as /proc/mounts names them."""


@dataclass(frozen=True, slots=True)
class Home:
    """The .smithers folder; `writable` is about the nearest folder above while it isn't there."""

    path: Path
    exists: bool
    is_folder: bool
    writable: bool
    filesystem: str | None
    holds_database: bool


@dataclass(frozen=True, slots=True)
class Space:
    """Room where something of ours is kept, in bytes."""

    purpose: str
    path: Path
    free: int
    total: int

    @property
    def share(self) -> float:
        """The free part, 0 to 1."""
        return self.free / self.total if self.total else 1.0


def judge_python(version: tuple[int, int, int], executable: str) -> Finding:
    """Whether this Python is new enough."""
    text = ".".join(map(str, version))
    details: dict[str, object] = {"version": text, "executable": executable}
    if version[:2] < OLDEST_PYTHON:
        fix = "install smithers-fleet with Python 3.11 or later"
        return Finding("python", State.PROBLEM, f"Python {text} is too old", fix, details)
    return Finding("python", State.OK, f"{text} ({executable})", None, details)


def judge_platform(system: str, release: str, machine: str) -> Finding:
    """Linux has all that Smithers needs; another Unix lacks /proc, Windows sessions and forks."""
    message = f"{system} {release} {machine}"
    details: dict[str, object] = {"system": system, "release": release, "machine": machine}
    if system == "Linux":
        return Finding("platform", State.OK, message, None, details)
    if system == "Windows":
        fix = "use Linux, or WSL 2"
        return Finding("platform", State.PROBLEM, f"{message} can't run it", fix, details)
    fix = "run workers on Linux, or in a container"
    words = f"{message}: what tasks leave behind can only be found and ended on Linux"
    return Finding("platform", State.WARNING, words, fix, details)


def judge_command(version: str, on_path: Path | None, ours: Path, *, same: bool) -> Finding:
    """Whether the `smithers` that a shell finds is this one; `ours` is the folder of ours."""
    details: dict[str, object] = {"version": version, "on_path": on_path and str(on_path)}
    if same:
        return Finding("smithers", State.OK, f"{version} ({on_path})", None, details)
    fix = f"export PATH={shlex.quote(str(ours))}:$PATH"
    what = "no smithers is on PATH" if on_path is None else f"PATH finds another one, {on_path}"
    message = f"this is {version} in {ours}, but {what}"
    return Finding("smithers", State.WARNING, message, fix, details)


def judge_home(home: Home) -> Finding:
    """Whether the home folder can be used, and a database be kept in it."""
    details: dict[str, object] = {
        "path": str(home.path),
        "exists": home.exists,
        "writable": home.writable,
        "filesystem": home.filesystem,
    }
    fix = "set SMITHERS_HOME to a folder that can be written"
    if home.exists and not home.is_folder:
        return Finding("home", State.PROBLEM, f"{home.path} is no folder", fix, details)
    if not home.writable:
        words = "can't be written" if home.exists else "can't be made: the folder above is closed"
        return Finding("home", State.PROBLEM, f"{home.path} {words}", fix, details)
    if home.holds_database and home.filesystem in NETWORK:
        message = f"{home.path} is on a network file system ({home.filesystem})"
        fix = "set SMITHERS_HOME to a folder on a local disk, or SMITHERS_DATABASE_URL to a server"
        return Finding("home", State.WARNING, message, fix, details)
    made = "" if home.exists else " (made when needed)"
    return Finding("home", State.OK, f"{home.path}{made}", None, details)


def judge_disk(spaces: Sequence[Space]) -> Finding:
    """Whether there is room in every place, by the fullest."""
    worst = min(spaces, key=lambda space: space.share)
    details: dict[str, object] = {
        space.purpose: {"path": str(space.path), "free": space.free, "total": space.total}
        for space in spaces
    }
    said = f"{worst.share:.0%} ({size(worst.free)}) free for {worst.purpose} in {worst.path}"
    if worst.share >= LITTLE_SPACE:
        return Finding("disk", State.OK, said, None, details)
    state = State.PROBLEM if worst.share < NO_SPACE else State.WARNING
    fix = f"make room on the disk of {worst.path}"
    return Finding("disk", state, f"only {said}", fix, details)


def judge_limits(open_files: int | None, socket_bytes: int | None, longest: int) -> Finding:
    """Whether a process may open enough; `open_files` None is no limit, `socket_bytes` None no
    socket of ours. A path longer than `longest` bytes isn't used: the socket is then in /tmp.
    """
    details: dict[str, object] = {"open_files": open_files, "socket_bytes": socket_bytes}
    files = "any number of open files" if open_files is None else f"{open_files} open files"
    if open_files is not None and open_files < FEW_FILES:
        state = State.PROBLEM if open_files < TOO_FEW_FILES else State.WARNING
        fix = f"ulimit -n {FEW_FILES * 4}"
        return Finding("limits", state, f"only {files} are allowed", fix, details)
    if socket_bytes is None:
        return Finding("limits", State.OK, files, None, details)
    socket = f"socket path of {socket_bytes} of {longest} bytes"
    if socket_bytes > longest:
        socket += ": the socket is in /tmp instead"
    return Finding("limits", State.OK, f"{files}, {socket}", None, details)


def size(count: int) -> str:
    """A number of bytes for people."""
    number = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def filesystem_of(path: Path, mounts: str) -> str | None:
    """The type of the file system that holds `path`, from the text of /proc/mounts."""
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        point = Path(_unescaped(words[1]))
        depth = len(point.parts)
        if path.is_relative_to(point) and (best is None or depth >= best[0]):
            best = (depth, words[2])
    return best[1] if best else None


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
