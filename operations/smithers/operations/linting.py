"""Find what is wrong with a workflow before it runs: it is played in two children, whose hashes
differ, on made-up outputs, twice in the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from smithers.bundle.build import build
from smithers.bundle.manifest import Bundle
from smithers.bundle.pack import pack
from smithers.bundle.store import Stored
from smithers.bundle.unpack import ensure
from smithers.operations.admission import Target
from smithers.operations.results import Result
from smithers.process.settings import Settings
from smithers.scheduler.renderer import RenderSettings, open_renderer
from smithers.sql.rows import Json
from smithers.workflow.errors import INPUT_INVALID, SmithersError

UNSTABLE_IDS: Final = "UNSTABLE_IDS"
IMPURE_RENDER: Final = "IMPURE_RENDER"
NOT_RENDERED: Final = "NOT_RENDERED"
NOT_ALL_SEEN: Final = "NOT_ALL_SEEN"
_HOST: Final = "smithers.operations.lint_host"
_SEEDS: Final = (1, 2)
_LOADING: Final = frozenset(
    {"IMPORT_FAILED", "SYNTAX_ERROR", "ENVIRONMENT_MISSING", "WORKFLOW_NOT_FOUND",
     "WORKFLOW_AMBIGUOUS", "ENTRY_NAME_TAKEN"}
)  # fmt: skip


class Level(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding(Result):
    """One thing that was found; `where` is file:line if that is known."""

    code: str
    level: Level
    message: str
    fix: str
    where: str | None = None
    node_id: str | None = None


def lint(settings: Settings, target: Target, document: object, *, given: bool) -> list[Finding]:
    """Find what is wrong; without a `given` input it is played on the model's defaults.

    Raises BundleError, RenderError as `admit` for a file that can't be looked at at all, and
    InputError for an input that was given and doesn't fit.
    """
    bundle = build(target.file)
    value: Json | None = {"value": document if given else {}}
    findings: list[Finding] = []
    try:
        first, second = (_inspect(settings, bundle, target, value, seed) for seed in _SEEDS)
    except SmithersError as error:
        if error.code in _LOADING or (given and error.code == INPUT_INVALID):
            raise
        if error.code != INPUT_INVALID:
            findings.append(_of_error(error))
        else:
            words = "the input has no defaults for all fields, so nothing was rendered"
            findings.append(Finding(NOT_RENDERED, Level.NOTE, words, "give one: --input JSON"))
        first = _inspect(settings, bundle, target, None, _SEEDS[0])
        second = first
    plays = [*first["plays"], *second["plays"]]
    findings += [_of_child(each) for each in first["findings"]]
    if plays:
        findings += compare(plays)
    findings += [
        Finding(NOT_ALL_SEEN, Level.NOTE, note, "test it: docs/testing.md")
        for note in first["notes"]
    ]
    return findings


def compare(plays: list[Mapping[str, Json]]) -> Iterator[Finding]:
    """Give what differs between plays that should be alike."""
    first = plays[0]
    for other in plays[1:]:
        here, there = sorted(first.keys() - other.keys()), sorted(other.keys() - first.keys())
        if here or there:
            yield Finding(
                UNSTABLE_IDS,
                Level.ERROR,
                f"two renders of the same rows have other ids: {_some(here)} and {_some(there)}",
                "make ids from input or outputs, never from chance, time or the order of a set",
            )
            return
        for name, descriptor in first.items():
            changed = [key for key in descriptor if descriptor[key] != other[name].get(key)]
            if changed:
                yield Finding(
                    IMPURE_RENDER,
                    Level.ERROR,
                    f"two renders give {name!r} another {', '.join(changed)}: "
                    f"{_value(descriptor, changed[0])} and {_value(other[name], changed[0])}",
                    "read what changes in a task, or take it from ctx.input",
                    node_id=name,
                )
                return


def _inspect(
    settings: Settings, bundle: Bundle, target: Target, value: Json | None, seed: int
) -> Json:
    def stored(_: str) -> Stored:
        return Stored(bundle.manifest, pack(bundle.contents))

    folder = ensure(stored, settings.home, bundle.source_hash)
    child = replace(RenderSettings.of(settings), host=_HOST, hash_seed=seed)
    with open_renderer(folder, child) as renderer:
        return renderer.inspect(target.workflow, value)


def _of_error(error: SmithersError) -> Finding:
    """What the core refuses is an error with its own code; an unsettled render is unstable."""
    code = UNSTABLE_IDS if error.code == "RENDER_UNSETTLED" else error.code
    place = error.details.get("place")
    path, line = error.details.get("path"), error.details.get("line")
    where = str(place) if place else f"{path}:{line}" if path else None
    hint = error.hint or "see docs/troubleshooting.md"
    node = error.details.get("node_id")
    node_id = None if node is None else str(node)
    return Finding(code, Level.ERROR, error.message, hint, where, node_id)


def _of_child(document: Mapping[str, Any]) -> Finding:
    return Finding(**{**document, "level": Level(document["level"])})


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3]) or "none"
    return f"{shown}, …" if len(names) > 3 else shown


def _value(descriptor: Json, key: str) -> str:
    return repr(descriptor.get(key))[:80]
