"""Judge the programs that tasks use: git, and the command lines of coding agents. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from smithers.operations.doctor.finding import Finding, State

OLDEST_GIT: Final = (2, 30)
_SHOWN: Final = 60


class Ending(StrEnum):
    """How a program that was asked for its version ended."""

    EXITED = "exited"
    HUNG = "hung"
    MISSING = "missing"
    NOT_STARTED = "not-started"


@dataclass(frozen=True, slots=True)
class Said:
    """What a program printed, and how it ended; `code` is its exit code if it exited."""

    ending: Ending
    text: str = ""
    code: int | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it exited with 0."""
        return self.ending is Ending.EXITED and self.code == 0


@dataclass(frozen=True, slots=True)
class Agent:
    """A command line of coding agents: how it gets to know who pays, and how one logs in."""

    name: str
    variables: tuple[str, ...]
    login: str


def version_in(text: str) -> str | None:
    """The first thing that looks like a version in what a program printed."""
    found = re.search(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)?[\w.+-]*)", text, re.ASCII)
    return found.group(1) if found else None


def judge_git(said: Said, *, identity: tuple[str, ...]) -> Finding:
    """Whether git is there, new enough, and knows whose commits they are; `identity` names what
    of user.name and user.email is set.
    """
    version = version_in(said.text) if said.succeeded else None
    details: dict[str, object] = {"version": version, "identity": sorted(identity)}
    if said.ending is Ending.MISSING:
        fix = "install git"
        words = "there is no git on PATH: runs carry no revision, and agents can't commit"
        return Finding("git", State.WARNING, words, fix, details)
    if version is None:
        return Finding("git", State.WARNING, _silence("git", said), "reinstall git", details)
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_GIT:
        words = f"git {version} is old"
        return Finding("git", State.WARNING, words, "update git to 2.30 or later", details)
    missing = [name for name in ("user.name", "user.email") if name not in identity]
    if missing:
        fix = " && ".join(f"git config --global {name} '…'" for name in missing)
        words = f"{version}, but {' and '.join(missing)} isn't set: commits will fail"
        return Finding("git", State.WARNING, words, fix, details)
    return Finding("git", State.OK, version, None, details)


def judge_agent(agent: Agent, path: str, said: Said, credentials: str | None) -> Finding:
    """Whether an agent on PATH runs; `credentials` names where they seem to be, never a value."""
    check = f"agent-{agent.name}"
    version = version_in(said.text) if said.succeeded else None
    details: dict[str, object] = {"path": path, "version": version, "credentials": credentials}
    if version is None:
        words = f"{path}: {_silence('it', said)}"
        fix = f"try {agent.name} --version, and reinstall it"
        return Finding(check, State.WARNING, words, fix, details)
    if credentials is None:
        words = f"{version}, but no credentials were seen"
        fix = f"{agent.login}, or set {agent.variables[0]}"
        return Finding(check, State.WARNING, words, fix, details)
    return Finding(check, State.OK, f"{version}, credentials by {credentials}", None, details)


def no_agents(names: list[str]) -> Finding:
    """None of them is there, which only matters to workflows that name one."""
    words = f"none of {', '.join(names)} is on PATH: only workflows that name one need it"
    return Finding("agents", State.OK, words, None, {"looked_for": names})


def _silence(name: str, said: Said) -> str:
    """Say how a program failed to give its version."""
    if said.ending is Ending.HUNG:
        return f"{name} --version didn't end, and was killed"
    if said.ending is not Ending.EXITED:
        return f"{name} can't be started: {said.text}"
    if said.code:
        return f"{name} --version ended with exit code {said.code}"
    first = next((line for line in said.text.splitlines() if line.strip()), "")
    printable = "".join(char if char.isprintable() else "?" for char in first)
    return f"{name} --version says no version: {printable.strip()[:_SHOWN]!r}"
