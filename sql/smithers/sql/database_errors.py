"""What can be wrong between a process and its database.

SmithersError
  DatabaseUnavailable   DATABASE_UNAVAILABLE  no answer, or no binaries to run one with
      SchemaError           SCHEMA_MISSING, _OUTDATED, _TOO_NEW, _CHANGED, _BUSY, _UNSUPPORTED
"""

from __future__ import annotations

from collections.abc import Mapping

from smithers.workflow.errors import SmithersError


class DatabaseUnavailable(SmithersError):
    """The database can't be reached; `details["cause"]` is what the server or system said."""

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, object] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__("DATABASE_UNAVAILABLE", message, details=details, hint=hint)


class SchemaError(SmithersError):
    """The tables or functions in the database aren't those that this release works with."""
