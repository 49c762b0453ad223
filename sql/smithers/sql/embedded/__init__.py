"""The Postgres server of a project that has no other: found, made, started and stopped by us.

One server per `.smithers` folder. It is detached: it outlives the command that started it and
stops only when told, or, if that is wanted, when nobody uses it. Nobody but its owner and root
can connect.
"""

from smithers.sql.embedded.locator import Binaries, find_binaries
from smithers.sql.embedded.place import Place
from smithers.sql.embedded.server import ServerStatus, ensure_running, server_status, stop_server
from smithers.sql.embedded.spawn import Options

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
