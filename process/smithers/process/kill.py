"""Stop, continue and kill a whole tree of processes, to the last grandchild.

A process belongs to a tree when it descends from the root, is in the root's session or group,
or carries the root's mark in the environment that exec gave it: a double fork escapes the
first, setsid the second, a cleared environment the third, and no ordinary program all three.
A running tree can grow while it is looked at; a stopped one can't. So members are stopped,
and looked for again, until a look finds no new one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from smithers.process.environment import CLAIM_VARIABLE, EXECUTOR_VARIABLE, Mark
from smithers.process.procfs import Proc, environment, processes, variable

_LOOKS = 1_000
"""A fork bomb grows for a few looks, never for this many: its processes are stopped."""
_DEATH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Tree:
    """A root, when it started (so that its pid isn't taken for a later one's), and its mark."""

    pid: int
    started: int
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """The living members at one look, and the process groups that hold others too."""

    members: list[Proc]
    mixed: frozenset[int]


def stop_tree(tree: Tree) -> list[Proc]:
    """SIGSTOP all members; returns those that live."""
    return _until_settled(partial(_look_at_tree, tree), signal.SIGSTOP)


def continue_tree(tree: Tree) -> list[Proc]:
    """SIGCONT all members; returns those that live."""
    return _until_settled(partial(_look_at_tree, tree), signal.SIGCONT)


def kill_tree(tree: Tree) -> int:
    """Kill all members and see them dead (reaping is up to their parents); returns how many."""
    return _kill(partial(_look_at_tree, tree))


def members(tree: Tree) -> list[Proc]:
    """The living processes of a tree, at one look."""
    return _look_at_tree(tree).members


def sweep(
    database: str, live: Callable[[Collection[Mark]], Collection[Mark]]
) -> list[tuple[Mark, int]]:
    """Kill the processes of this host whose mark has no living owner.

    Looks only at marks of the database with the instance id `database`; `live` gets those
    found and returns those to be left alone. It must raise if it can't tell: then nothing is
    killed. Returns the dead marks and how many processes carried each.
    """
    marks = _marks_of(database)
    if not marks:
        return []
    kept = set(live(marks))
    return [(mark, _kill(partial(_look_at_mark, mark))) for mark in marks if mark not in kept]


def _kill(look: Callable[[], Look]) -> int:
    victims = {(p.pid, p.started) for p in _until_settled(look, signal.SIGSTOP)}
    deadline = time.monotonic() + _DEATH_SECONDS
    while (seen := look()).members:
        victims |= {(p.pid, p.started) for p in seen.members}
        _send(seen.members, signal.SIGKILL, seen.mixed)
        if time.monotonic() > deadline:
            break  # uninterruptible: it can't run user code before it dies
        time.sleep(0.001)
    return len(victims)


def _until_settled(look: Callable[[], Look], number: int) -> list[Proc]:
    """Signal the members until two looks in a row find nobody new; returns the last look."""
    known: set[tuple[int, int]] = set()
    for _ in range(_LOOKS):
        seen = look()
        new = [p for p in seen.members if (p.pid, p.started) not in known]
        if not new:
            return seen.members
        _send(new, number, seen.mixed)
        known |= {(p.pid, p.started) for p in new}
    return look().members


def _send(procs: list[Proc], number: int, mixed: frozenset[int]) -> None:
    """Signal processes, whole groups where no stranger is in them.

    The kernel signals a group as one: a chain of processes that fork and exit faster than a
    look takes can't slip through, as it could between two single signals.
    """
    for group in {p.group for p in procs} - mixed:
        with suppress(OSError):  # it has ended, or another user owns it
            os.killpg(group, number)
    for proc in procs:
        if proc.group in mixed:
            with suppress(OSError):
                os.kill(proc.pid, number)


def _look_at_tree(tree: Tree) -> Look:
    everybody = processes()
    root = everybody.get(tree.pid)
    reused = root is not None and root.started != tree.started
    # No descendant is older than the root, which spares reading most environments.
    found = {
        p.pid
        for p in everybody.values()
        if p.started >= tree.started
        and (
            (not reused and tree.pid in (p.pid, p.session, p.group))
            or (tree.mark is not None and _mark(p, tree.mark.name) == tree.mark.value)
        )
    }
    return _with_descendants(found, everybody)


def _look_at_mark(mark: Mark) -> Look:
    everybody = processes()
    found = {p.pid for p in everybody.values() if _mark(p, mark.name) == mark.value}
    return _with_descendants(found, everybody)


def _mark(proc: Proc, name: str) -> str | None:
    return None if proc.dead else variable(environment(proc.pid), name)


def _marks_of(database: str) -> list[Mark]:
    prefix = database + ":"
    marks: dict[Mark, None] = {}
    for proc in processes().values():
        if proc.pid == os.getpid() or proc.dead:
            continue
        environ = environment(proc.pid)
        for name in (EXECUTOR_VARIABLE, CLAIM_VARIABLE):
            value = variable(environ, name)
            if value is not None and value.startswith(prefix):
                marks[Mark(name, value)] = None
    return list(marks)


def _with_descendants(roots: set[int], everybody: dict[int, Proc]) -> Look:
    """The living among the roots and all that descend from them, never this process."""
    children: dict[int, list[int]] = {}
    for proc in everybody.values():
        children.setdefault(proc.parent, []).append(proc.pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid not in found and pid != os.getpid():
            found.add(pid)
            todo += children.get(pid, ())
    living = [p for p in everybody.values() if p.pid in found and not p.dead]
    others = frozenset(p.group for p in everybody.values() if p.pid not in found)
    return Look(living, others | {0, 1, os.getpgrp()})
