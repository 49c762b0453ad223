"""Become a process of a local fleet: one that is asked to end when the one that started it ends.

    python -P -m smithers.operations.offspring PARENT WORD…

The wish survives exec, so the process is an ordinary `smithers WORD…` afterwards. SIGTERM and
not SIGKILL: what runs may finish within its grace, and the run stays resumable.
"""

from __future__ import annotations

import os
import signal
import sys

from smithers.process.linux import die_with_parent


def main() -> None:
    """Ask the kernel for the signal, then become the command."""
    parent, *words = sys.argv[1:]
    die_with_parent(int(parent), signal.SIGTERM)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "smithers.cli.main", *words])  # noqa: S606


if __name__ == "__main__":
    main()
