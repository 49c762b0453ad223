"""What a process says of its database: one line per change."""

from __future__ import annotations

from smithers.observability.logs import Line, Log
from smithers.process.link import DatabaseState


def test_a_change_is_logged_once_whoever_sees_it() -> None:
    logs: list[Line] = []
    state = DatabaseState(Log(sink=logs.append))
    first = state.up()
    second = state.up()
    state.down(OSError("gone"), made=first)
    state.down(OSError("refused"), made=None)
    assert not state.is_up
    back = state.up()
    # A connection from before is found dead only now.
    state.down(OSError("gone"), made=second)
    assert state.is_up
    state.down(OSError("gone again"), made=back)
    assert not state.is_up
    assert [line["event"] for line in logs] == ["database-away", "database-back", "database-away"]
