"""Who a process is: a stamp that no other process start ever has."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from uuid import UUID, uuid4


@dataclass(frozen=True, slots=True)
class Identity:
    """One start of one process. The pid and the host are for people; the uuid decides."""

    kind: str
    host: str
    pid: int
    uuid: UUID

    def __str__(self) -> str:
        return f"{self.kind}:{self.host}:{self.pid}:{self.uuid}"


def host_name() -> str:
    """The name of this host, as the rows in `processes` carry it."""
    return socket.gethostname()


def new_identity(kind: str) -> Identity:
    """A new stamp for this process, also when it has had one before."""
    return Identity(kind=kind, host=host_name(), pid=os.getpid(), uuid=uuid4())
