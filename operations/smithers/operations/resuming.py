"""Resume a run: compare the file at hand with what the run began with, then make it runnable.

A living owner is never robbed: the caller follows what that process does. A dead one's lease
ends by itself, after which any scheduler goes on.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from smithers.bundle.build import build
from smithers.bundle.manifest import Bundle
from smithers.bundle.store import store
from smithers.operations.admission import Target, renderer_of, renderer_of_stored
from smithers.operations.drift import Drift, compare, differing_files, mismatch
from smithers.operations.errors import RUN_INPUT_DIFFERS, OperationError
from smithers.operations.ids import known_run_id
from smithers.operations.looking import unknown_run
from smithers.operations.results import Admitted
from smithers.operations.vcs import find_checkout
from smithers.operations.verdict import owner_label
from smithers.process.settings import Settings
from smithers.scheduler.renderer import Renderer
from smithers.sql import operator, reads
from smithers.sql.calls import Connection
from smithers.sql.rows import Json
from smithers.workflow.states import WAITING_RUNS


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a run goes on; `given_input` says whether `document` was given at all."""

    target: Target | None = None
    document: object = None
    given_input: bool = False
    pinned: bool = False
    accept_workflow_change: bool = False
    force: bool = False
    """Ask even a run that waits, or that is done, to look at its plan again."""


def resume(connection: Connection, settings: Settings, run_id: str, terms: Terms) -> Admitted:
    """Make a parked or ended run runnable again; attach to one that is being advanced.

    Raises UnknownRun, OperationError (RESUME_METADATA_MISMATCH,
    RUN_INPUT_DIFFERS), Refused (RUN_OWNED, RUN_ALREADY_ENDED for a continued run), and what
    admission raises for a changed workflow.
    """
    stored = reads.read_stored_run(connection, known_run_id(run_id))
    if stored is None:
        raise unknown_run(run_id)
    bundle = None if terms.pinned else _current(connection, stored, terms)
    if terms.given_input:
        with _renderer(connection, settings, stored, bundle) as renderer:
            _refuse_other_input(renderer, stored, terms)
    changed = bundle is not None and bundle.source_hash != stored["source_hash"]
    if changed and bundle is not None:
        _admit_again(settings, stored, bundle)
    with connection.transaction():
        operator.lock_run(connection, run_id)  # of two that resume at once, one has done it
        stored = reads.read_stored_run(connection, run_id) or stored
        if changed and bundle is not None:
            store(connection, bundle)
            operator.accept_source(connection, run_id, bundle.source_hash)
        owner = _owner(connection, run_id)
        if _needs_waking(stored, force=terms.force or changed) and not (owner and not changed):
            answer = operator.resume_run(connection, run_id)
            return _admitted(stored, str(answer["status"]), resumed=True, attached=None)
    return _admitted(stored, str(stored["status"]), resumed=False, attached=owner)


def _current(connection: Connection, stored: Json, terms: Terms) -> Bundle | None:
    """Build the file that the run is to go on with, if it may be used; raises for a drift."""
    file = terms.target.file if terms.target else Path(str(stored["path"]))
    if not file.exists():
        if terms.target is not None:
            build(file)  # says that there is no such file
        raise mismatch(stored, Drift(missing=str(file)))
    bundle = build(file)
    drift = compare(stored, bundle, str(file.resolve()), find_checkout(bundle.root))
    if drift.place or (drift.source and not terms.accept_workflow_change):
        manifest = reads.read_manifest(connection, str(stored["source_hash"]))
        raise mismatch(stored, drift, differing_files(manifest, bundle))
    return bundle


def _renderer(
    connection: Connection, settings: Settings, stored: Json, bundle: Bundle | None
) -> AbstractContextManager[Renderer]:
    """The code that the run goes on with: the file's, or the stored one's."""
    if bundle is not None:
        return renderer_of(settings, bundle)
    return renderer_of_stored(connection, settings, str(stored["source_hash"]))


def _refuse_other_input(renderer: Renderer, stored: Json, terms: Terms) -> None:
    """An input given with a resume must be the one that the run has."""
    document = renderer.admit(str(stored["workflow"]), terms.document).input
    if document != stored["input"]:
        raise OperationError(
            RUN_INPUT_DIFFERS,
            f"run {stored['run_id']} has another input, which can't be changed",
            details={"stored": stored["input"], "given": document},
            hint="leave --input out, or start a new run",
        )


def _admit_again(settings: Settings, stored: Json, bundle: Bundle) -> None:
    """The changed workflow must load, and the stored input must fit it."""
    with renderer_of(settings, bundle) as renderer:
        renderer.readmit(str(stored["workflow"]), stored["input"])


def _needs_waking(stored: Json, *, force: bool) -> bool:
    status = str(stored["status"])
    if force or stored["pause_requested_at"] or stored["cancel_requested_at"]:
        return True
    return status not in {"running", "finished"} and status not in WAITING_RUNS


def _owner(connection: Connection, run_id: str) -> str | None:
    """Name the living process that advances a run, by its lease."""
    rows = reads.read_runs(connection, run_id=run_id)
    owner = rows[0]["owner"] if rows else None
    return owner_label(owner) if owner and owner["live"] else None


def _admitted(stored: Json, status: str, *, resumed: bool, attached: str | None) -> Admitted:
    return Admitted(
        run_id=str(stored["run_id"]),
        created=False,
        status=status,
        workflow=str(stored["workflow"]),
        path=str(stored["path"]),
        resumed=resumed,
        attached=attached,
    )
