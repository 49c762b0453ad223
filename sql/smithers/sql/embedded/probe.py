"""Ask a server with a real query whether it is there. A pid or a socket file proves nothing."""

from __future__ import annotations

from enum import StrEnum

import psycopg

from smithers.sql.embedded.place import Place

ASK_SECONDS = 5


class Answer(StrEnum):
    """What came back."""

    READY = "ready"
    STARTING = "starting"
    NONE = "none"


# libpq gives no SQLSTATE for a refused connection; the server was made with English messages.
_FULL = ("too many clients", "connection slots are reserved")
_STARTING = ("starting up", "not yet accepting", "in recovery", "shutting down")


def ask(place: Place) -> Answer:
    """One connection and one query."""
    if not place.socket_lock.exists():
        return Answer.NONE
    try:
        with psycopg.connect(
            place.dsn(), connect_timeout=ASK_SECONDS, autocommit=True
        ) as connection:
            connection.execute("select 1")
        return Answer.READY
    except psycopg.Error as exc:
        said = str(exc)
        if any(words in said for words in _FULL):
            return Answer.READY
        return Answer.STARTING if any(words in said for words in _STARTING) else Answer.NONE
