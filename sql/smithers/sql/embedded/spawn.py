"""Start the server's process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from smithers.sql.embedded import user as users
from smithers.sql.embedded.locator import Binaries
from smithers.sql.embedded.place import Place
from smithers.sql.embedded.user import ServerUser

LARGEST_LOG = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """How a server is run. `durable=False` is for tests: a crash of the machine loses data.

    `stop_when_idle` is in seconds without a client, 0 for never, None for as it was before.
    """

    bindir: Path | None = None
    max_connections: int = 100
    durable: bool = True
    die_with_parent: bool = False
    stop_when_idle: float | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])


def spawn(place: Place, binaries: Binaries, user: ServerUser, options: Options) -> int:
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
            return _spawn_child(line, log.fileno(), users.environment(program.parent))
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=users.environment(program.parent),
            check=True,
        )
    return int(done.stdout)


def _spawn_child(line: list[str], log: int, environment: dict[str, str]) -> int:
    """Start a child by its pid alone; when it ends it may stay a zombie as long as we live."""
    return os.posix_spawn(
        line[0],
        line,
        environment,
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
