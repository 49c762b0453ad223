"""The Postgres server of a project that has no other: found, made, started and stopped by us.

One server per `.smithers` folder. It is detached: it outlives the command that started it and
stops only when told. Nobody but its owner and root can connect.
"""

from smithers.sql.embedded.locator import Binaries, find_binaries
from smithers.sql.embedded.place import Place
from smithers.sql.embedded.server import (
    Options,
    ServerStatus,
    ensure_running,
    server_status,
    stop_server,
)

__all__ = [
    "Binaries",
    "Options",
    "Place",
    "ServerStatus",
    "ensure_running",
    "find_binaries",
    "server_status",
    "stop_server",
]
