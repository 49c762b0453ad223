"""What every command shares: the settings that the command line names, and JSON output."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

if TYPE_CHECKING:
    from smithers.process.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Invocation:
    """One use of the command; `flags` are the settings given before the subcommand."""

    flags: dict[str, object] = field(default_factory=dict[str, object])

    def settings(self, **flags: object) -> Settings:
        """The settings of this process, with a subcommand's own flags. Raises `SettingsError`."""
        from smithers.process.settings import load_settings

        return load_settings({**self.flags, **flags})


pass_invocation = click.make_pass_decorator(Invocation, ensure=True)


def json_option(function: F) -> F:
    """Give a command `--json`, as the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(
        function
    )


def strict_option(function: F) -> F:
    """Give a command `--strict`."""
    return click.option(
        "--strict", is_flag=True, help="Exit code 1 for a run that is done but degraded."
    )(function)


def print_json(value: object) -> None:
    """Print a result: dataclasses and pydantic models as objects, times in ISO 8601."""
    click.echo(json.dumps(value, default=plain, ensure_ascii=True, indent=2))


def plain(value: object) -> object:
    """What json can't write itself, as something that it can."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case Enum():
            return value.value
        case Path() | UUID():
            return str(value)
        case set() | frozenset():
            return sorted(value, key=str)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        case _:
            if callable(dump := getattr(value, "model_dump", None)):
                return dump(mode="json")
            raise TypeError(f"{type(value).__name__} can't be printed as JSON")
