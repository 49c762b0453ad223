"""Judge the database: whether it answers, keeps what it is given, fits us, has our time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from smithers.operations.doctor.finding import Finding, State
from smithers.workflow.errors import SmithersError

OLDEST_SERVER: Final = 150_000
CLOCK_OFF: Final = 2.0
CLOCK_BROKEN: Final = 60.0
SLOW_MS: Final = 100.0
CROWDED: Final = 0.8
_DURABLE: Final = ("fsync", "full_page_writes", "synchronous_commit")


@dataclass(frozen=True, slots=True)
class Embedded:
    """The server of the home folder; `lacking` says why it couldn't be started, if so.

    `silent_pid` is a server process that doesn't answer; `in_the_way` says that something else
    is where the data would be.
    """

    data: Path
    log: Path
    url: str
    running: bool
    pid: int | None
    silent_pid: int | None
    major: int | None
    in_the_way: bool
    bindir: Path | None
    lacking: SmithersError | None


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says of itself; `round_trip` and `offset` (it minus us) are in seconds."""

    version: int
    max_connections: int
    connections: int
    settings: dict[str, str]
    read_only: bool
    in_recovery: bool
    round_trip: float
    offset: float

    @classmethod
    def of(cls, row: dict[str, Any], *, asked: float, answered: float) -> Self:
        """Read what the query `health` gives; `asked` and `answered` are host times around it."""
        return cls(
            version=row["version"],
            max_connections=row["max_connections"],
            connections=row["connections"],
            settings={name: row[name] for name in _DURABLE},
            read_only=row["read_only"],
            in_recovery=row["in_recovery"],
            round_trip=answered - asked,
            offset=float(row["now"]) - (asked + answered) / 2,
        )

    @property
    def major(self) -> int:
        """The major version."""
        return self.version // 10_000


def judge_embedded(server: Embedded) -> Finding:
    """Whether the embedded server runs or could."""
    details: dict[str, object] = {
        "embedded": True,
        "running": server.running,
        "data": str(server.data),
        "data_major": server.major,
        "bindir": server.bindir and str(server.bindir),
    }
    if server.silent_pid is not None:
        words = f"the embedded server (pid {server.silent_pid}) runs, but doesn't answer"
        fix = f"see the end of {server.log}; smithers db stop ends it"
        return Finding("database", State.PROBLEM, words, fix, details)
    if server.in_the_way:
        words = f"{server.data} is in the way: it is no data directory of Postgres"
        fix = "move it away, or set SMITHERS_HOME to another folder"
        return Finding("database", State.PROBLEM, words, fix, details)
    if server.lacking is not None:
        # One that runs is used as it is; it just can't be started again.
        state = State.WARNING if server.running else State.PROBLEM
        said = {**server.lacking.details, **details}
        return Finding("database", state, server.lacking.message, server.lacking.hint, said)
    if server.running:
        words = f"embedded, running (pid {server.pid})"
        return Finding("database", State.OK, words, None, details)
    made = "stopped" if server.major else "not made yet"
    return Finding("database", State.OK, f"embedded, {made}: starts when needed", None, details)


def judge_server(server: Server, shown: str, *, embedded: Finding | None) -> Finding:
    """Whether a server that answers can be worked on."""
    milliseconds = server.round_trip * 1000
    details: dict[str, object] = {
        **(embedded.details if embedded else {"embedded": False}),
        "version": server.version,
        "round_trip_ms": round(milliseconds, 3),
        "read_only": server.read_only,
        "in_recovery": server.in_recovery,
    }
    said = f"{shown}, Postgres {server.major}, {milliseconds:.1f} ms a round trip"
    if server.version < OLDEST_SERVER:
        fix = f"use Postgres {OLDEST_SERVER // 10_000} or later"
        words = f"{shown}: Postgres {server.major} is too old"
        return Finding("database", State.PROBLEM, words, fix, details)
    if server.in_recovery:
        words = f"{shown} is in recovery: a standby, or a server that isn't restored yet"
        fix = "point SMITHERS_DATABASE_URL at the primary (target_session_attrs=read-write)"
        return Finding("database", State.PROBLEM, words, fix, details)
    if server.read_only:
        words = f"{shown} only reads: default_transaction_read_only is on"
        fix = "set default_transaction_read_only = off for this role and database"
        return Finding("database", State.PROBLEM, words, fix, details)
    if embedded is not None and embedded.state is not State.OK:
        return Finding("database", embedded.state, embedded.message, embedded.fix, details)
    if milliseconds > SLOW_MS:
        fix = "run Smithers nearer to its database"
        return Finding("database", State.WARNING, f"slow: {said}", fix, details)
    return Finding("database", State.OK, said, None, details)


def judge_durability(server: Server) -> Finding:
    """Whether what was committed is still there after a power cut."""
    off = [name for name, value in server.settings.items() if value == "off"]
    details: dict[str, object] = dict(server.settings)
    if off:
        words = f"{', '.join(off)} off: a crash can lose or damage committed steps"
        fix = f"set {', '.join(f'{name} = on' for name in off)} in postgresql.conf, and reload it"
        return Finding("durability", State.WARNING, words, fix, details)
    return Finding("durability", State.OK, "commits survive a crash", None, details)


def judge_connections(server: Server) -> Finding:
    """Whether there are connections left."""
    used, limit = server.connections, server.max_connections
    details: dict[str, object] = {"connections": used, "max_connections": limit}
    words = f"{used} of {limit} in use"
    if used >= CROWDED * limit:
        fix = "raise max_connections, or put PgBouncer in front (SMITHERS_DATABASE_POOLED=true)"
        return Finding("connections", State.WARNING, words, fix, details)
    return Finding("connections", State.OK, words, None, details)


def judge_schema(refusal: SmithersError | None, *, embedded: bool, release: str) -> Finding:
    """Whether tables and functions fit; `refusal` is what the schema's own check raised.

    An embedded database is migrated by the next command, a given one only by `smithers migrate`.
    """
    if refusal is None:
        return Finding("schema", State.OK, f"current ({release})", None, {"release": release})
    details = {**refusal.details, "code": refusal.code}
    passing = refusal.code in ("SCHEMA_MISSING", "SCHEMA_OUTDATED")
    if embedded and passing:
        words = f"{refusal.message}: the next command that needs it migrates it"
        return Finding("schema", State.WARNING, words, "smithers migrate", details)
    return Finding("schema", State.PROBLEM, refusal.message, refusal.hint, details)


def judge_clock(server: Server) -> Finding:
    """Whether this host and the database agree on the time, within half a round trip."""
    offset = server.offset
    details: dict[str, object] = {"offset_seconds": round(offset, 3)}
    apart = abs(offset)
    if apart <= CLOCK_OFF:
        return Finding("clock", State.OK, f"within {max(apart, 0.001):.3f} s", None, details)
    state = State.PROBLEM if apart > CLOCK_BROKEN else State.WARNING
    way = "ahead of" if offset < 0 else "behind"
    words = f"this host is {_span(apart)} {way} the database"
    fix = "let NTP set the clocks of both hosts, for example: timedatectl set-ntp true"
    return Finding("clock", state, words, fix, details)


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
