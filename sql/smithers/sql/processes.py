"""Process rows: who is alive, by the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from smithers.sql import codec
from smithers.sql.calls import Connection, perform, scalar


def register_process(
    connection: Connection,
    *,
    kind: str,
    host: str,
    pid: int,
    uuid: UUID,
    lease: timedelta,
    name: str | None = None,
    queues: Sequence[str] | None = None,
    version: str | None = None,
    details: dict[str, object] | None = None,
) -> int:
    """Register one process start and give the number that its rows carry as `owner`."""
    document = {
        "kind": kind,
        "host": host,
        "pid": pid,
        "uuid": str(uuid),
        "name": name,
        "queues": None if queues is None else list(queues),
        "version": version,
        "details": details or {},
    }
    return int(
        scalar(
            connection,
            "select smithers_p1.register_process(%s::jsonb, %s)",
            codec.encode(document),
            lease,
        )
    )


def beat_process(connection: Connection, owner: int, lease: timedelta) -> bool:
    """Renew the process lease; False means declared dead."""
    return bool(scalar(connection, "select smithers_p1.beat_process(%s, %s)", owner, lease))


def stop_process(connection: Connection, owner: int) -> None:
    """Say that the process ends by itself."""
    perform(connection, "select smithers_p1.stop_process(%s)", owner)


def instance_id(connection: Connection) -> str:
    """Name this database for the marks of child processes."""
    return str(scalar(connection, "select smithers_p1.instance_id()"))
