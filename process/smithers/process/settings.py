"""One frozen settings object per process, and where each of its values came from.

A value is taken from the first that has it: a flag, the environment (`SMITHERS_` and the
setting's name in capitals), `smithers.toml` or `[tool.smithers]` of a `pyproject.toml` (the
nearest one upward from the working directory), the default. Empty text counts as not set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from smithers.process.settings_file import SettingsFile, find_settings_file
from smithers.process.settings_values import (
    LogLevel,
    SettingsError,
    parse_count,
    parse_database_url,
    parse_flag,
    parse_log_level,
    parse_path,
    parse_seconds,
    without_password,
)

__all__ = ["Origin", "Settings", "SettingsError", "load_settings"]

PREFIX = "SMITHERS_"
HOME_FOLDER = ".smithers"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from; `where` names the flag, variable, file and key, or formula."""

    kind: Literal["flag", "environment", "file", "default", "derived"]
    where: str

    def __str__(self) -> str:
        return self.where


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a process was told. Seconds are floats, paths absolute."""

    database_url: str | None = None
    """A server of one's own; None means the embedded one in `home`."""
    database_pooled: bool = False
    """PgBouncer in transaction mode is in front of the server: no prepared statements."""
    home: Path
    """The `.smithers` folder: embedded database, unpacked bundles, logs. May not exist yet."""
    lease_seconds: float = 30.0
    """How long a claim is good for without a heartbeat."""
    heartbeat_seconds: float
    """Pause between two heartbeats; lease / 6 when not set, at most lease / 3."""
    supervisor_poll_seconds: float
    """Pause between two looks of a supervisor; lease / 10 when not set."""
    suspend_seconds: float
    """Silence of the database after which attempts are suspended; always lease x 22/30."""
    settle_ms: int = 150
    """How long a working tree must be quiet before it is captured, in milliseconds."""
    log_level: LogLevel = "info"
    poison_attempts: int = 3
    """Lost attempts without progress after which a task fails."""
    resume_limit: int = 3
    """Resumes of a run without progress after which it fails."""
    render_timeout_seconds: float = 10.0
    """How long one render of a workflow may take."""
    log_limit_mb: int = 256
    """Bytes of output kept of one attempt, in MiB."""
    pg_bindir: Path | None = None
    """A folder with initdb, postgres and pg_ctl, used before any that are found."""
    db_stop_when_idle: float = 0.0
    """Seconds without a client after which the embedded server is stopped; 0: never."""
    test_dsn: str | None = None
    """A server on which the test suite may create databases."""
    origins: Mapping[str, Origin] = field(
        default_factory=lambda: MappingProxyType[str, Origin]({}), repr=False, compare=False
    )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.shown().items())
        return f"Settings({shown})"

    def shown(self) -> dict[str, object]:
        """Name and value of every setting, fit for people: without passwords."""
        return {
            name: without_password(value) if name in _SECRET and isinstance(value, str) else value
            for name, value in ((name, getattr(self, name)) for name in NAMES)
        }

    def environment(self, *, with_database_url: bool = True) -> dict[str, str]:
        """The variables that give a child process these same settings.

        Values that a child would find by itself are left out, except `home`. A child that
        runs the user's code gets no database URL.
        """
        chosen = {
            name: str(getattr(self, name))
            for name, origin in self.origins.items()
            if origin.kind not in ("default", "derived") and getattr(self, name) is not None
        }
        chosen["home"] = str(self.home)
        if not with_database_url:
            for name in _SECRET:
                chosen.pop(name, None)
        return {PREFIX + name.upper(): value for name, value in chosen.items()}


NAMES = tuple(f.name for f in fields(Settings) if f.name != "origins")
_SECRET = frozenset({"database_url", "test_dsn"})
_DERIVED_ONLY = frozenset({"suspend_seconds"})
_SETTABLE = tuple(name for name in NAMES if name not in _DERIVED_ONLY)

_PARSERS = {
    "database_url": parse_database_url,
    "database_pooled": parse_flag,
    "home": parse_path,
    "lease_seconds": parse_seconds(0.5, 86_400),
    "heartbeat_seconds": parse_seconds(0.05, 28_800),
    "supervisor_poll_seconds": parse_seconds(0.05, 86_400),
    "settle_ms": parse_count(0, 60_000),
    "log_level": parse_log_level,
    "poison_attempts": parse_count(1, 1_000_000),
    "resume_limit": parse_count(1, 1_000_000),
    "render_timeout_seconds": parse_seconds(0.1, 3_600),
    "log_limit_mb": parse_count(1, 1_048_576),
    "pg_bindir": parse_path,
    "db_stop_when_idle": parse_seconds(0, 604_800),
    "test_dsn": parse_database_url,
}


def load_settings(
    flags: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Read the settings of this process.

    `flags` maps setting names to what the command line gave; None means not given.
    Raises `SettingsError` (`SETTING_INVALID`, `SETTING_UNKNOWN`, `SETTINGS_FILE_INVALID`), which
    names the setting, where it came from, and what would be right.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    file = find_settings_file(cwd)
    _refuse_unknown(flags or {}, environ, file)
    values: dict[str, object] = {}
    origins: dict[str, Origin] = {}
    for name in _SETTABLE:
        found = _look_up(name, flags or {}, environ, file)
        if found is not None:
            raw, origins[name] = found
            base = file.path.parent if file and origins[name].kind == "file" else cwd
            values[name] = _PARSERS[name](name, raw, str(origins[name]), base)
    _complete(values, origins, cwd)
    _check_together(values, origins)
    return Settings(**values, origins=MappingProxyType(origins))  # type: ignore[arg-type]


def _look_up(
    name: str,
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    file: SettingsFile | None,
) -> tuple[object, Origin] | None:
    """The first place that has the setting, or None."""
    variable = PREFIX + name.upper()
    if (value := flags.get(name)) not in (None, ""):
        return value, Origin("flag", "--" + name.replace("_", "-"))
    if text := environ.get(variable):
        return text, Origin("environment", variable)
    if file and file.values.get(name, "") != "":
        return file.values[name], Origin("file", f"{name} in {file.label}")
    return None


def _complete(values: dict[str, object], origins: dict[str, Origin], cwd: Path) -> None:
    """Fill in what was not set: defaults, and values that follow from others."""
    for f in fields(Settings):
        if f.name in _SETTABLE and f.name not in origins and f.name not in _FORMULAS:
            origins[f.name] = Origin("default", "default")
    if "home" not in values:
        values["home"] = nearest_home(cwd)
        origins["home"] = Origin("default", "the nearest one upward, else here")
    lease = values.get("lease_seconds", Settings.__dataclass_fields__["lease_seconds"].default)
    assert isinstance(lease, float)
    for name, (factor, formula) in _FORMULAS.items():
        if name not in values:
            values[name] = lease * factor
            origins[name] = Origin("derived", formula)


_FORMULAS = {
    "heartbeat_seconds": (1 / 6, "lease_seconds / 6"),
    "supervisor_poll_seconds": (1 / 10, "lease_seconds / 10"),
    "suspend_seconds": (22 / 30, "lease_seconds x 22/30"),
}


def _check_together(values: Mapping[str, object], origins: Mapping[str, Origin]) -> None:
    lease = values.get("lease_seconds", 30.0)
    beat = values["heartbeat_seconds"]
    assert isinstance(lease, float)
    assert isinstance(beat, float)
    if beat > lease / 3:
        origin = origins["heartbeat_seconds"]
        raise SettingsError.invalid(
            "heartbeat_seconds",
            str(origin),
            beat,
            f"it may be at most a third of lease_seconds ({lease:g}): two beats may get lost",
            hint=f"set it to {lease / 3:g} or less, leave it out, or raise lease_seconds",
        )


def _refuse_unknown(
    flags: Mapping[str, object], environ: Mapping[str, str], file: SettingsFile | None
) -> None:
    """Refuse names that are surely mistakes.

    In a file every unknown key is one. Among the variables only near misses are: others may
    be somebody else's (Kubernetes makes SMITHERS_PORT for a service named smithers).
    """
    for name in flags:
        if name not in _SETTABLE:
            raise SettingsError.unknown(name, "a flag", _close(name))
    for name in file.values if file else ():
        if name not in _SETTABLE:
            assert file is not None
            raise SettingsError.unknown(name, file.label, _close(name))
    known = {PREFIX + name.upper() for name in _SETTABLE} | _OTHER_VARIABLES
    for variable in environ:
        if variable.startswith(PREFIX) and variable not in known:
            close = _close(variable.removeprefix(PREFIX).lower())
            if close is not None:
                raise SettingsError.unknown(variable, "the environment", PREFIX + close.upper())


_OTHER_VARIABLES = frozenset({"SMITHERS_CLAIM_ID", "SMITHERS_EXECUTOR_ID"})


def _close(name: str) -> str | None:
    from difflib import get_close_matches

    matches = get_close_matches(name, _SETTABLE, n=1, cutoff=0.85)
    return matches[0] if matches else None


def nearest_home(cwd: Path) -> Path:
    """The nearest `.smithers` folder upward that is ours, else the one to be made in `cwd`.

    A folder of another user is passed over: it could hold a database that is not ours.
    """
    for folder in (cwd, *cwd.parents):
        candidate = folder / HOME_FOLDER
        try:
            if candidate.is_dir() and candidate.stat().st_uid == os.geteuid():
                return candidate.absolute()
        except OSError:
            continue
    return (cwd / HOME_FOLDER).absolute()
