"""What environment a child gets, and the marks by which its descendants are found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

EXECUTOR_VARIABLE = "SMITHERS_EXECUTOR_ID"
CLAIM_VARIABLE = "SMITHERS_CLAIM_ID"
PARENT_VARIABLE = "SMITHERS_PARENT_PID"

_KEPT = frozenset({"SMITHERS_HOME", "SMITHERS_LOG_LEVEL", "SMITHERS_SETTLE_MS"})
"""The variables of the engine that a task may see. New ones are secret until put here."""

_LIBPQ = frozenset(
    {
        "PGAPPNAME", "PGCHANNELBINDING", "PGDATABASE", "PGHOST", "PGHOSTADDR", "PGOPTIONS",
        "PGPASSFILE", "PGPASSWORD", "PGPORT", "PGSERVICE", "PGSERVICEFILE", "PGSSLCERT",
        "PGSSLKEY", "PGSSLMODE", "PGSSLROOTCERT", "PGUSER",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """A variable in the exec environment that all descendants of a child inherit.

    The value starts with the instance id of a database and a colon: one database's sweep
    never touches the processes of another.
    """

    name: str
    value: str

    @property
    def database(self) -> str:
        """The instance id of the database."""
        return self.value.split(":", 1)[0]

    @property
    def owner(self) -> int | None:
        """The `processes` row that an executor belongs to, None for a claim's mark."""
        if self.name != EXECUTOR_VARIABLE:
            return None
        parts = self.value.split(":")
        return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else None

    @property
    def claim_id(self) -> UUID | None:
        """The claim that a process was started for, None for an executor's mark."""
        if self.name != CLAIM_VARIABLE:
            return None
        try:
            return UUID(self.value.split(":")[1])
        except (IndexError, ValueError):
            return None


def executor_mark(database: str, owner: int, uuid: UUID) -> Mark:
    """The mark of a warm executor or a renderer."""
    return Mark(EXECUTOR_VARIABLE, f"{database}:{owner}:{uuid}")


def claim_mark(
    database: str, claim_id: UUID, *, run_id: str, node_id: str, iteration: int, attempt: int
) -> Mark:
    """The mark of a child that runs one attempt only."""
    # Quoted: the id of a node may hold what an environment can't.
    node = quote(node_id, safe="", errors="surrogatepass")
    key = f"{quote(run_id, safe='')}:{iteration}:{attempt}:{node}"
    return Mark(CLAIM_VARIABLE, f"{database}:{claim_id}:{key}")


def child_environment(
    mark: Mark | None,
    *,
    home: str,
    database_url: str | None = None,
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment of a child that runs the user's code.

    It has what this process has, but no variable of the engine other than the harmless ones,
    nothing that libpq reads, and no variable whose value is the engine's database URL.
    """
    base = os.environ if base is None else base
    environ = {
        name: value
        for name, value in base.items()
        if (name in _KEPT or not name.startswith("SMITHERS_"))
        and name not in _LIBPQ
        and (database_url is None or value != database_url)
    }
    environ["SMITHERS_HOME"] = home
    environ[PARENT_VARIABLE] = str(os.getpid())
    if mark is not None:
        environ[mark.name] = mark.value
    return environ
