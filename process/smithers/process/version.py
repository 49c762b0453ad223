"""Which release this is."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The version of the installed distribution, "0" when it isn't installed."""
    try:
        return metadata.version("smithers-fleet")
    except metadata.PackageNotFoundError:
        return "0"
