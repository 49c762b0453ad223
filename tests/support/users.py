"""Do something as another user: in a forked child, since that user may not be able to run us."""

from __future__ import annotations

import json
import os
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be several users")


def as_user(uid: int, work: Callable[[], Any]) -> Any:
    """The JSON-able result of `work`, done as that user; fails with the child's traceback."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(uid, work, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = json.loads(pipe.read() or b'{"error": "the child died"}')
    os.waitpid(pid, 0)
    assert "error" not in told, told["error"]
    return told["result"]


def _child(uid: int, work: Callable[[], Any], writing: int) -> None:
    try:
        os.chdir("/")
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        told = {"result": work()}
    except BaseException:  # noqa: BLE001 - the parent shows it
        told = {"error": traceback.format_exc()}
    os.write(writing, json.dumps(told).encode())
    os._exit(0)


def open_python() -> str | None:
    """A Python that every user can run, or None."""
    for candidate in (shutil.which("python3"), "/usr/bin/python3"):
        if candidate and Path(candidate).exists() and open_to_all(Path(candidate).resolve()):
            return candidate
    return None


def open_to_all(path: Path) -> bool:
    """Whether anybody may go there."""
    return all(parent.stat().st_mode & 0o001 for parent in path.resolve().parents)
