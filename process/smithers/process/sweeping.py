"""Which marks on this host still belong to somebody."""

from __future__ import annotations

from collections.abc import Collection

from smithers.process.environment import EXECUTOR_VARIABLE, PARENT_VARIABLE, Mark
from smithers.process.kill import sweep
from smithers.process.procfs import environment, process, processes, variable
from smithers.sql.calls import Connection
from smithers.sql.processes import instance_id
from smithers.sql.supervisor import live_claims, live_owners


def sweep_orphans(connection: Connection) -> list[tuple[Mark, int]]:
    """Kill the processes of this host that belong to a dead owner or an ended claim of this
    database; returns their marks and how many there were of each.

    Raises what the database raises: a silent database is no proof of death.
    """
    return sweep(instance_id(connection), lambda marks: living(connection, marks))


def living(connection: Connection, marks: Collection[Mark]) -> set[Mark]:
    """Those marks whose owner is current or, for executors, whose parent still runs here.

    A worker that was away for a lease is not an orphan's parent: when it comes back, it beats,
    is told what it lost, and kills that itself.
    """
    owners = live_owners(connection)
    claims = live_claims(connection, [m.claim_id for m in marks if m.claim_id is not None])
    attended = _attended()
    return {m for m in marks if m.owner in owners or m.claim_id in claims or m in attended}


def _attended() -> set[Mark]:
    """The marks of executors whose parent runs."""
    attended: set[Mark] = set()
    for proc in processes().values():
        environ = b"" if proc.dead else environment(proc.pid)
        value = variable(environ, EXECUTOR_VARIABLE)
        parent = process(int(variable(environ, PARENT_VARIABLE) or 0)) if value else None
        if value and parent and not parent.dead and parent.started <= proc.started:
            attended.add(Mark(EXECUTOR_VARIABLE, value))
    return attended
