"""What a client forgets in a forked child: locks that another thread held, sockets of the parent.

A server that loads the application and then forks its workers may so make its client before.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Something with locks or connections of one process."""

    def begin_anew(self) -> None:
        """Become as new; the only thread of a new process calls it."""


_KNOWN: WeakSet[Renewable] = WeakSet()


def renew_after_fork(each: Renewable) -> None:
    """Call `begin_anew` in every process that is forked from this one, as long as it is used."""
    _KNOWN.add(each)


def _renew() -> None:
    for each in list(_KNOWN):
        each.begin_anew()


os.register_at_fork(after_in_child=_renew)
