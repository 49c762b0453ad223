"""Which checkout a workflow file lies in: its root, kind and revision."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

_GIT_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Checkout:
    """A working copy; all None outside of one. `revision` is the commit, without local changes."""

    type: Literal["git", "jj"] | None = None
    root: str | None = None
    revision: str | None = None


def find_checkout(folder: Path) -> Checkout:
    """Find the checkout around a folder. Never raises: a repository that can't be read has no
    revision.
    """
    for candidate in (folder, *folder.parents):
        if (candidate / ".jj").is_dir():
            return Checkout("jj", str(candidate), _git_revision(candidate))
        if (candidate / ".git").exists():
            return Checkout("git", str(candidate), _git_revision(candidate))
    return Checkout()


def _git_revision(root: Path) -> str | None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", "HEAD"],
            env={**clean, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    revision = done.stdout.strip()
    return revision if done.returncode == 0 and revision else None
