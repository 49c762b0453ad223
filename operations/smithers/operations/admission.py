"""Look at a workflow file before anything is written: build its bundle, load it in a child,
validate the input.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from smithers.bundle.build import build
from smithers.bundle.errors import FILE_NOT_FOUND, BundleError
from smithers.bundle.manifest import Bundle
from smithers.bundle.pack import pack
from smithers.bundle.store import Stored, fetch
from smithers.bundle.unpack import ensure
from smithers.operations.vcs import Checkout, find_checkout
from smithers.process.nursery import Nursery
from smithers.process.settings import Settings
from smithers.scheduler.renderer import Renderer, RenderSettings, open_renderer
from smithers.sql.calls import Connection
from smithers.sql.rows import Json


@dataclass(frozen=True, slots=True)
class Target:
    """What `FILE[:name]` means: a file, and which of its workflows."""

    file: Path
    workflow: str | None = None

    @property
    def path(self) -> str:
        """The absolute path, free of symbolic links."""
        return str(self.file.resolve())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workflow that loads, and an input that fits it; nothing of it is in the database yet."""

    target: Target
    bundle: Bundle
    checkout: Checkout
    workflow: str
    input: object


def parse_target(text: str) -> Target:
    """Read `FILE[:name]`; a file whose own name has a colon is that file.

    Raises BundleError (FILE_NOT_FOUND) for what can't be the name of a file.
    """
    if "\0" in text:
        raise BundleError(FILE_NOT_FOUND, f"{text!a} can't be the name of a file")
    head, colon, name = text.rpartition(":")
    if colon and name and "/" not in name and not Path(text).exists():
        return Target(Path(head), name)
    return Target(Path(text))


def admit(
    settings: Settings, target: Target, document: object, *, nursery: Nursery | None = None
) -> Candidate:
    """Admit a workflow and an input.

    Any thread may: the child that loads the file dies with the thread that started it, which is
    this one, and it has ended when this returns.
    Raises BundleError (FILE_NOT_FOUND, SYNTAX_ERROR, …) and RenderError (IMPORT_FAILED,
    ENVIRONMENT_MISSING, WORKFLOW_NOT_FOUND, WORKFLOW_AMBIGUOUS, INPUT_INVALID, RENDER_*).
    """
    bundle = build(target.file)
    with renderer_of(settings, bundle, nursery) as renderer:
        admission = renderer.admit(target.workflow, document)
    checkout = find_checkout(bundle.root)
    return Candidate(target, bundle, checkout, admission.workflow, admission.input)


def graph(settings: Settings, target: Target, document: object) -> Json:
    """Give the structure of the first frame that an input would get. Raises as `admit`."""
    with renderer_of(settings, build(target.file)) as renderer:
        return renderer.graph(target.workflow, document)


@contextmanager
def renderer_of_stored(
    connection: Connection, settings: Settings, source_hash: str
) -> Generator[Renderer]:
    """A renderer child for a stored code version. Raises BundleError for one that isn't whole."""
    folder = ensure(lambda name: fetch(connection, name), settings.home, source_hash)
    with open_renderer(folder, RenderSettings.of(settings)) as renderer:
        yield renderer


@contextmanager
def renderer_of(
    settings: Settings, bundle: Bundle, nursery: Nursery | None = None
) -> Generator[Renderer]:
    """A renderer child that has the bundle at hand, unpacked in the home folder."""

    def stored(_: str) -> Stored:
        return Stored(bundle.manifest, pack(bundle.contents))

    folder = ensure(stored, settings.home, bundle.source_hash)
    with open_renderer(folder, RenderSettings.of(settings), nursery) as renderer:
        yield renderer
