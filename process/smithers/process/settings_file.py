"""Find and read the file that holds a project's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from smithers.process.settings_values import SettingsError

FILE = "smithers.toml"
PYPROJECT = "pyproject.toml"
TABLE = "tool.smithers"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The settings in one file, as TOML typed them; `label` names file and table."""

    path: Path
    label: str
    values: Mapping[str, object]


def find_settings_file(cwd: Path) -> SettingsFile | None:
    """The nearest upward: `smithers.toml`, or a `pyproject.toml` that has `[tool.smithers]`.

    Raises `SettingsError` (`SETTINGS_FILE_INVALID`) when it can't be read or parsed.
    """
    for folder in (cwd, *cwd.parents):
        if (path := folder / FILE).is_file():
            return SettingsFile(path, str(path), _read(path))
        if (path := folder / PYPROJECT).is_file():
            values = _tool_table(path)
            if values is not None:
                return SettingsFile(path, f"[{TABLE}] of {path}", values)
    return None


def _tool_table(path: Path) -> Mapping[str, object] | None:
    """The table of ours, or None. A broken file without it is not our business."""
    try:
        if f"[{TABLE}]" not in path.read_text("utf-8"):
            return None
    except (OSError, UnicodeDecodeError):
        return None
    tool = _read(path).get("tool")
    table: object = tool.get("smithers") if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else None


def _read(path: Path) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise SettingsError(
            "SETTINGS_FILE_INVALID",
            f"{path} can't be read: {exc}",
            details={"path": str(path)},
            hint="correct the file, or move it away",
        ) from exc
