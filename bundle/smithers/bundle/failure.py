"""Turn what a user's code raised into one line for a person and a traceback for the details."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from smithers.bundle.errors import ENVIRONMENT_MISSING, IMPORT_FAILED, SYNTAX_ERROR, BundleError
from smithers.bundle.manifest import Manifest

MAX_MESSAGE_CHARACTERS = 2_000
MAX_TRACEBACK_CHARACTERS = 32_000


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of user code: its last line, the innermost place in the bundle, the whole
    traceback.

    `path` is from the bundle's root, or "" when no line of the bundle was running; `line` counts
    from 1.
    """

    last_line: str
    path: str
    line: int
    traceback: str

    @property
    def where(self) -> str:
        """`path:line`, or "" when the place isn't known."""
        return f"{self.path}:{self.line}" if self.path else ""

    @property
    def message(self) -> str:
        """The last line with its place in front."""
        return f"{self.where}: {self.last_line}" if self.path else self.last_line

    def details(self) -> dict[str, object]:
        """Return the facts as JSON: traceback, and path and line when they are known."""
        place = {"path": self.path, "line": self.line} if self.path else {}
        return {**place, "traceback": self.traceback}


def describe(error: BaseException, folder: Path) -> Failure:
    """Describe an exception that the code of the bundle unpacked at `folder` raised.

    Never raises: an exception whose own `__str__` fails is described by its type.
    """
    path, line = _place(error, folder)
    try:
        summary = traceback.TracebackException.from_exception(error, limit=-60)
        text = "".join(summary.format())
        last = [row for row in "".join(summary.format_exception_only()).splitlines() if row.strip()]
        last_line = last[-1].strip() if last else type(error).__name__
    except Exception:  # noqa: BLE001  user code decides what str(error) does
        text = last_line = type(error).__name__
    return Failure(
        last_line=last_line[:MAX_MESSAGE_CHARACTERS],
        path=path,
        line=line,
        traceback=_short(text.replace(f"{folder}/", "")),
    )


def import_failure(error: BaseException, folder: Path, manifest: Manifest) -> BundleError:
    """Return the typed error for what importing the entry raised."""
    failure = describe(error, folder)
    if isinstance(error, SyntaxError):
        return BundleError(SYNTAX_ERROR, failure.message, details=failure.details())
    if isinstance(error, ModuleNotFoundError) and _is_foreign(error.name, manifest):
        return BundleError(
            ENVIRONMENT_MISSING,
            failure.message,
            details={**failure.details(), "module": error.name},
            hint=f"install the distribution that provides {error.name} where Smithers runs",
        )
    return BundleError(IMPORT_FAILED, failure.message, details=failure.details())


def _is_foreign(name: str | None, manifest: Manifest) -> bool:
    """Say whether a missing module belongs to no top-level package of the bundle."""
    if not name:
        return False
    top = name.partition(".")[0]
    for root in manifest.import_roots:
        prefix = f"{root}/{top}" if root else top
        if any(
            file.path == f"{prefix}.py" or file.path.startswith(f"{prefix}/")
            for file in manifest.files
        ):
            return False
    return True


def _place(error: BaseException, folder: Path) -> tuple[str, int]:
    prefix = f"{folder}/"
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(prefix):
        return (error.filename or "").removeprefix(prefix), error.lineno or 0
    path, line = "", 0
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.startswith(prefix):
            path, line = frame.f_code.co_filename.removeprefix(prefix), number
    return path, line


def _short(text: str) -> str:
    if len(text) <= MAX_TRACEBACK_CHARACTERS:
        return text
    half = MAX_TRACEBACK_CHARACTERS // 2
    return f"{text[:half]}\n…\n{text[-half:]}"
