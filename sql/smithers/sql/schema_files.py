"""The migrations and functions that this release brings, as files beside this one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Final

PROTOCOL: Final = 1
"""Rises when the meaning or shape of a stored function changes; named in its schema."""

_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_BREAKING = re.compile(rb"^-- breaking: (yes|no)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the tables. A breaking one makes older processes refuse the schema."""

    number: int
    name: str
    breaking: bool
    text: bytes

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, in hex."""
        return hashlib.sha256(self.text).hexdigest()


@dataclass(frozen=True, slots=True)
class Functions:
    """All stored functions of our protocol, in the order in which they are created."""

    schema: str
    texts: tuple[bytes, ...]

    @property
    def checksum(self) -> str:
        """SHA-256 over the checksums of the files, in hex."""
        parts = b"".join(hashlib.sha256(text).digest() for text in self.texts)
        return hashlib.sha256(parts).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """By number. Raises ValueError for a file that is misnamed or doesn't say `-- breaking:`."""
    return tuple(parse_migration(name, text) for name, text in _texts("migrations"))


@cache
def functions() -> Functions:
    """By file name."""
    return Functions(f"smithers_p{PROTOCOL}", tuple(text for _, text in _texts("functions")))


def parse_migration(name: str, text: bytes) -> Migration:
    """Read what a migration says about itself. Raises ValueError."""
    match = _NAME.fullmatch(name)
    breaking = _BREAKING.search(text)
    if match is None or breaking is None:
        raise ValueError(f"{name}: a migration is NNNN_name.sql with a line -- breaking: yes|no")
    return Migration(int(match.group(1)), name, breaking.group(1) == b"yes", text)


def release() -> tuple[int, ...]:
    """The version of this distribution as numbers, for comparison."""
    try:
        text = version("smithers-fleet")
    except PackageNotFoundError:
        return (0,)
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _texts(folder: str) -> list[tuple[str, bytes]]:
    found = (files("smithers.sql") / folder).iterdir()
    return sorted((f.name, f.read_bytes()) for f in found if f.name.endswith(".sql"))
