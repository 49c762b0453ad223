"""What can be wrong with a dump, and what refuses to take one.

SmithersError
  ArchiveError   DUMP_FAILED · DUMP_INVALID no whole dump of a Smithers database ·
                 DUMP_TOO_NEW of a later Postgres · RESTORE_FAILED · DATABASE_NOT_EMPTY ·
                 DATABASE_IN_USE · PG_PROGRAMS_TOO_OLD
"""

from __future__ import annotations

from typing import Final

from smithers.workflow.errors import SmithersError

DUMP_FAILED: Final = "DUMP_FAILED"
DUMP_INVALID: Final = "DUMP_INVALID"
DUMP_TOO_NEW: Final = "DUMP_TOO_NEW"
RESTORE_FAILED: Final = "RESTORE_FAILED"
DATABASE_NOT_EMPTY: Final = "DATABASE_NOT_EMPTY"
DATABASE_IN_USE: Final = "DATABASE_IN_USE"
PG_PROGRAMS_TOO_OLD: Final = "PG_PROGRAMS_TOO_OLD"


class ArchiveError(SmithersError):
    """A dump can't be made or restored; the database is as it was before."""
