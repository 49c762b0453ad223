"""What stored functions refuse, as exceptions: SQLSTATE → class, in this one place.

    SmithersError
    ├── Fenced              SM001  FENCED           another process advances this run now
    ├── UnknownRun          SM002  RUN_UNKNOWN
    ├── ProcessExpired      SM003  PROCESS_EXPIRED  the process was declared dead
    ├── Refused             SM004  its own code     a person asked for what can't be
    └── UnknownShape        SM005  OUTPUT_UNKNOWN   an output shape was never registered

Everything else (a lost connection, a deadlock, a full disk) stays the psycopg error that it is;
`is_connection_lost` and `is_transient` sort those for the loops that retry.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import psycopg

from smithers.workflow.errors import SmithersError

_RETRY: Final = frozenset({"40001", "40P01", "55P03", "57014"})
_GONE: Final = ("08", "57P", "53", "25006", "25P03")


class Fenced(SmithersError):
    """The token of a run is not current: roll back and write nothing more about it."""


class UnknownRun(SmithersError):
    """There is no run of that id."""


class ProcessExpired(SmithersError):
    """The database declared this process dead; it must register under a new uuid."""


class Refused(SmithersError):
    """The call is understood and not allowed; `code` says which rule refused it."""


class UnknownShape(SmithersError):
    """An output has a shape that no scheduler has registered."""


def translate(error: psycopg.Error) -> Exception:
    """Give the Smithers error behind a psycopg error, or the error itself."""
    message = error.diag.message_primary or str(error)
    match error.sqlstate:
        case "SM001":
            return Fenced("FENCED", message)
        case "SM002":
            return UnknownRun("RUN_UNKNOWN", message, hint="smithers ps --all lists the runs")
        case "SM003":
            return ProcessExpired("PROCESS_EXPIRED", message)
        case "SM004":
            detail = json.loads(error.diag.message_detail or "{}")
            return Refused(
                detail["code"],
                message,
                details=detail["details"],
                hint=error.diag.message_hint or None,
            )
        case "SM005":
            return UnknownShape("OUTPUT_UNKNOWN", message)
        case _:
            return error


@contextmanager
def translated() -> Generator[None]:
    """Raise what `translate` gives for every psycopg error inside."""
    try:
        yield
    except psycopg.Error as error:
        better = translate(error)
        if better is error:
            raise
        raise better from error


def is_connection_lost(error: BaseException) -> bool:
    """True when the outcome of the statement is unknown: discard the connection, then ask again.

    No SQLSTATE at all is a socket that died (the reply of a COMMIT may be lost with it).
    """
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_GONE)


def is_transient(error: BaseException) -> bool:
    """True when the whole transaction was rolled back and may be repeated as it is."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _RETRY
