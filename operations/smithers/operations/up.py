"""`up`: admit a run, follow it, and lend it a fleet for as long as nobody else serves.

admitted = admit_run(settings, request)
end = follow_run(settings, admitted, audience)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from smithers.operations.admission import admit, parse_target
from smithers.operations.errors import RUN_ID_MISSING, OperationError
from smithers.operations.fleet import SLOTS, LocalFleet, local_fleet
from smithers.operations.following import Audience, End, Follower, Notice, Unlogged
from smithers.operations.ids import check_run_id
from smithers.operations.interrupts import Interrupts
from smithers.operations.nurseries import Nurseries
from smithers.operations.results import Admitted
from smithers.operations.resuming import Terms, resume
from smithers.operations.session import session
from smithers.operations.starting import start_run
from smithers.process.link import Link
from smithers.process.listener import Listener
from smithers.process.nursery import Nursery
from smithers.process.settings import Settings
from smithers.sql.connect import Database
from smithers.sql.notify import DIRTY
from smithers.sql.rows import Json

_GRACE_AT_END: Final = 3.0  # for attempts of other runs; ours has none in flight
_GRACE_AT_INTERRUPT: Final = 30.0

EXIT_CODES: Final = {"finished": 0, "continued": 0, "failed": 1, "cancelled": 2}
PARKED: Final = 3


@dataclass(frozen=True, slots=True)
class Request:
    """What `up` was asked for. `file` is `FILE[:name]`; without `given_input` it is `{}`."""

    file: str
    run_id: str | None = None
    document: object = None
    given_input: bool = False
    resume: bool = False
    max_concurrency: int | None = None
    pinned: bool = False
    accept_workflow_change: bool = False
    request_id: str | None = None

    def to_json(self) -> Json:
        """Give the request as a detached engine is told it."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Json) -> Self:
        """Read what `to_json` gave."""
        return cls(**document)


def admit_run(
    settings: Settings, request: Request, *, nursery: Nursery | None = None
) -> tuple[Database, Admitted]:
    """Create the run, or resume it. Main thread only.

    Everything that can be wrong with the file, the input and the id raises a SmithersError, and
    nothing is written then.
    """
    if request.run_id is not None:
        check_run_id(request.run_id)
    if request.resume:
        if request.run_id is None:
            raise OperationError(
                RUN_ID_MISSING, "--resume needs --run-id", hint="smithers ps --all lists the runs"
            )
        terms = Terms(
            target=parse_target(request.file),
            document=request.document,
            given_input=request.given_input,
            pinned=request.pinned,
            accept_workflow_change=request.accept_workflow_change,
        )
        with session(settings, purpose="up") as opened:
            found = resume(opened.connection, settings, request.run_id, terms)
            return opened.database, found
    candidate = admit(settings, parse_target(request.file), request.document, nursery=nursery)
    with session(settings, purpose="up") as opened:
        started = start_run(
            opened.connection,
            candidate,
            run_id=request.run_id,
            max_concurrency=request.max_concurrency,
            request_id=request.request_id,
        )
        return opened.database, started


def log_path(settings: Settings, run_id: str) -> Path:
    """The file that takes what a run's own fleet prints."""
    return settings.home / "logs" / f"{run_id}.log"


def follow_run(
    settings: Settings,
    database: Database,
    run_id: str,
    audience: Audience,
    interrupts: Interrupts,
    *,
    nurseries: Nurseries,
    park: bool = False,
    slots: int = SLOTS,
    since: int | None = 0,
) -> End:
    """Follow a run to its end or park, and leave no process. Main thread only.

    Events after number `since` are told, or without it those that come from now on.
    A decision may wake the run again while the fleet is being stopped: it relied on that fleet,
    so the run is looked at once more before this returns. Raises OperationError (FLEET_FAILED).
    """
    link = Link(database, name="smithers up", state=Unlogged())
    log = log_path(settings, run_id)
    with local_fleet(settings, log, nurseries, slots=slots) as fleet:
        follower = Follower(run_id, link, fleet, audience, interrupts, park=park, since=since)
        listening = Link(database, name="smithers up listen", state=Unlogged())
        listener = Listener(listening, [DIRTY], lambda _channel, _payload: follower.heard())
        listener.start()
        try:
            return _follow_until_quiet(follower, fleet, interrupts)
        finally:
            listener.stop()
            link.close()


def _follow_until_quiet(follower: Follower, fleet: LocalFleet, interrupts: Interrupts) -> End:
    while True:
        end = follower.follow()
        if end is End.INTERRUPTED:
            _leave(follower, fleet, interrupts)
            return end
        if not fleet.running:
            return end
        fleet.stop(grace=_GRACE_AT_END, hurried=interrupts.hurried)


def _leave(follower: Follower, fleet: LocalFleet, interrupts: Interrupts) -> None:
    if fleet.running:
        follower.audience.notice(Notice.LEAVING, "")
        fleet.stop(grace=_GRACE_AT_INTERRUPT, hurried=interrupts.hurried)
    follower.look_again()
