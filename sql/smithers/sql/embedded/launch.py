"""Start one program as another user, detached or tied to its starter. Run as a script.

    launch.py [--user UID:GID] [--read-anywhere] [--detach | --die-with-parent] PROGRAM [ARGUMENT…]

`--read-anywhere` keeps one capability for the unprivileged user, to read and search folders
that are closed to it. So a server works below a 0700 folder without a chmod of anything: as
root, when the project and its programs lie in /root, that is the only way that moves no file.
`--detach` starts a new session, prints the program's pid and ends; `--die-with-parent` asks the
kernel to stop the program when its starter ends. This file is run with `python -I -S` and
must import nothing of ours.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_SECUREBITS = 28
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2
# KEEP_CAPS alone would do for open(); access(), with which Postgres looks for its own program,
# ignores the capabilities of other users than root unless NO_SETUID_FIXUP is set.
SECUREBITS = (1 << 2) | (1 << 4)
CAPABILITY_V3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def _checked(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _prctl(libc: ctypes.CDLL, option: int, *values: int) -> None:
    numbers = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _checked(libc.prctl(option, *numbers), f"prctl {option}")


def _held(libc: ctypes.CDLL) -> int:
    """The permitted capabilities of this process, the first 32 as bits."""
    sets = (_Sets * 2)()
    _checked(libc.capget(ctypes.byref(_Header(CAPABILITY_V3, 0)), sets), "capget")
    return int(sets[0].permitted)


def become(uid: int, gid: int, *, read_anywhere: bool) -> None:
    """Give up being root for good, all but one capability if asked for. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    keep = 0
    if read_anywhere:
        held = _held(libc)
        # The narrower one first; containers usually grant only the wider one.
        keep = next((c for c in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE) if held >> c & 1), 0)
        _prctl(libc, PR_SET_SECUREBITS, SECUREBITS)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if read_anywhere:
        bit = 1 << keep if keep else 0
        sets = (_Sets * 2)(_Sets(bit, bit, bit), _Sets(0, 0, 0))
        _checked(libc.capset(ctypes.byref(_Header(CAPABILITY_V3, 0)), sets), "capset")
        if keep:
            _prctl(libc, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, keep)


def main(arguments: list[str]) -> None:
    """Do what the module says; problems go to stderr with exit code 126."""
    user: tuple[int, int] | None = None
    options: set[str] = set()
    while arguments and arguments[0].startswith("--"):
        option = arguments.pop(0)
        if option == "--user":
            uid, _, gid = arguments.pop(0).partition(":")
            user = (int(uid), int(gid))
        else:
            options.add(option)
    if "--detach" in options:
        os.setsid()
        pid = os.fork()
        if pid:
            os.write(1, b"%d\n" % pid)
            return
        os.dup2(2, 1)
    os.chdir("/")
    if user is not None:
        become(*user, read_anywhere="--read-anywhere" in options)
    if "--die-with-parent" in options:
        _prctl(ctypes.CDLL(None, use_errno=True), PR_SET_PDEATHSIG, signal.SIGQUIT)
    os.execv(arguments[0], arguments)  # noqa: S606 - that is the point


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        os.write(2, f"launch.py: {error}\n".encode(errors="replace"))
        os._exit(126)
