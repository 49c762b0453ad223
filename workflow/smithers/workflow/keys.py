"""Ids: what an author may call a node, and how a loop's passes make keys of it.

The pass number of the innermost loop is a key's `iteration`; the passes of all the loops
around that one go into the node id: `edit@@outer=2,mid=0`. A loop's own row is
`(loop, pass)`, so every loop around it is named.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, TypeAlias

from smithers.workflow.errors import INVALID_ID, AuthorError

NodeKey: TypeAlias = tuple[str, int]
"""A node inside one run: its id with the suffix, and its iteration."""

Passes: TypeAlias = tuple[tuple[str, int], ...]
"""The loops around a node, outermost first, each with its pass number."""

ID_BYTES: Final = 256
NODE_ID_BYTES: Final = 1024
MARK: Final = "@@"


@dataclass(frozen=True, slots=True, order=True)
class TaskKey:
    """The identity that a resume matches on."""

    run_id: str
    node_id: str
    iteration: int

    @property
    def node_key(self) -> NodeKey:
        """The key inside its run."""
        return (self.node_id, self.iteration)


def check_id(value: object, what: str) -> str:
    """Return an author's id if it may be used.

    Raises AuthorError (INVALID_ID), naming the kind of node and the id.
    """
    if type(value) is not str:
        raise _invalid(what, value, f"it must be a string, not {type(value).__name__}")
    if value.isascii() and value.isprintable() and value.strip() and len(value) <= ID_BYTES:
        if MARK in value:
            raise _invalid(what, value, f"it may not contain {MARK!r}, which marks loop passes")
        return value
    return _check_rare_id(value, what)


def check_loop_id(value: object) -> str:
    """Return a loop's id, which stands in suffixes and so has no comma and no equals sign.

    Raises AuthorError (INVALID_ID).
    """
    checked = check_id(value, "Loop")
    if "," in checked or "=" in checked:
        raise _invalid("Loop", value, "a loop's id may not contain ',' or '='")
    return checked


def normal(author_id: str) -> str:
    """Give the form in which two ids are compared."""
    return author_id if author_id.isascii() else unicodedata.normalize("NFC", author_id)


def node_key(author_id: str, passes: Passes) -> NodeKey:
    """Give the key of a node inside the given passes."""
    if not passes:
        return (author_id, 0)
    return (author_id + suffix(passes[:-1]), passes[-1][1])


def loop_key(author_id: str, around: Passes, iteration: int) -> NodeKey:
    """Give the key of a loop's pass; `around` are the passes of the loops around the loop."""
    return (author_id + suffix(around), iteration)


def suffix(passes: Passes) -> str:
    """Give the part of a node id that names passes; empty without any."""
    if not passes:
        return ""
    return MARK + ",".join(f"{loop}={iteration}" for loop, iteration in passes)


def author_id(node_id: str) -> str:
    """Give the id that the author wrote."""
    return node_id.partition(MARK)[0]


def _check_rare_id(value: str, what: str) -> str:
    if not value.strip():
        raise _invalid(what, value, "it is empty")
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in value):
        raise _invalid(what, value, "it contains a control character or half a surrogate pair")
    if len(value.encode()) > ID_BYTES:
        raise _invalid(what, value, f"it is longer than {ID_BYTES} bytes")
    if MARK in value:
        raise _invalid(what, value, f"it may not contain {MARK!r}, which marks loop passes")
    return value


def _invalid(what: str, value: object, why: str) -> AuthorError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "…'"
    return AuthorError(
        INVALID_ID,
        f"{what} has the id {shown}: {why}",
        details={"kind": what, "id": shown},
        hint="Give every task, wait and loop a short id that stays the same across renders.",
    )
