"""LISTEN and NOTIFY: a hint to look sooner, never the only way to learn something."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final, Literal, LiteralString

from smithers.sql.calls import Connection, perform

Channel = Literal["smithers_ready", "smithers_dirty"]

READY: Final = "smithers_ready"
DIRTY: Final = "smithers_dirty"

_LISTEN: Final[dict[Channel, LiteralString]] = {
    "smithers_ready": "listen smithers_ready",
    "smithers_dirty": "listen smithers_dirty",
}


def listen(connection: Connection, channels: Sequence[Channel]) -> None:
    """Subscribe this connection; behind a transaction pooler it succeeds and hears nothing."""
    for channel in channels:
        perform(connection, _LISTEN[channel])


def notifications(
    connection: Connection, *, seconds: float
) -> Generator[tuple[str, str], None, None]:
    """Give (channel, payload) of what arrives within `seconds`, as it arrives."""
    for notification in connection.notifies(timeout=seconds):
        yield notification.channel, notification.payload


def notify(connection: Connection, channel: Channel, payload: str = "") -> None:
    """Tell whoever listens; an empty payload says "look at everything"."""
    perform(connection, "select pg_notify(%s, %s)", channel, payload)
