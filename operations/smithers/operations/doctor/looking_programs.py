"""Ask programs for their versions: bounded in time and output, in sessions of their own."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Final

from smithers.operations.doctor.finding import Check, Finding
from smithers.operations.doctor.programs import (
    Agent,
    Ending,
    Said,
    judge_agent,
    judge_git,
    no_agents,
)

SECONDS: Final = 5.0
_MOST_BYTES: Final = 16_384
AGENTS: Final = (
    Agent(
        "claude",
        (
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
        ),
        "start claude and say /login",
    ),
    Agent("codex", ("OPENAI_API_KEY", "CODEX_API_KEY"), "codex login"),
    Agent("opencode", ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"), "opencode auth login"),
)


def program_checks() -> dict[str, Check]:
    """The checks of git and of each agent that is on PATH."""
    checks: dict[str, Check] = {"git": _git}
    found = {agent: path for agent in AGENTS if (path := shutil.which(agent.name))}
    for agent, path in found.items():
        checks[f"agent-{agent.name}"] = partial(_agent, agent, path)
    if not found:
        checks["agents"] = lambda: no_agents([agent.name for agent in AGENTS])
    return checks


def ask(argv: Sequence[str], *, seconds: float) -> Said:
    """What a program prints to standard output; killed with its session when it takes too long or
    prints without end. It is told nothing of our settings, a database's password among them.
    """
    environ = {name: text for name, text in os.environ.items() if not name.startswith("SMITHERS_")}
    try:
        process = subprocess.Popen(
            argv,
            env={**environ, "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    except FileNotFoundError:
        return Said(Ending.MISSING)
    except OSError as error:
        return Said(Ending.NOT_STARTED, error.strerror or str(error))
    assert process.stdout is not None
    deadline = time.monotonic() + seconds
    try:
        text = _read(process.stdout, deadline)
        code = None if text is None else _end(process, deadline)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
    if text is None or code is None:
        return Said(Ending.HUNG)
    return Said(Ending.EXITED, text, code)


def _read(stream: IO[bytes], deadline: float) -> str | None:
    """All that is printed before the deadline; None if it doesn't end, in time or length."""
    said = b""
    while (left := deadline - time.monotonic()) > 0 and len(said) < _MOST_BYTES:
        if not select.select([stream], [], [], left)[0]:
            return None
        chunk = os.read(stream.fileno(), _MOST_BYTES)
        if not chunk:
            return said.decode("utf-8", "replace")
        said += chunk
    return None


def _end(process: subprocess.Popen[bytes], deadline: float) -> int | None:
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _git() -> Finding:
    said = ask(["git", "--version"], seconds=SECONDS)
    if not said.succeeded:
        return judge_git(said, identity=())
    words = ["git", "config", "--get-regexp", r"^user\.(name|email)$"]
    lines = ask(words, seconds=SECONDS).text.splitlines()
    pairs = [line.partition(" ") for line in lines]
    identity = {name for name, _, value in pairs if value.strip()}
    for name in ("name", "email"):
        parts = (f"GIT_AUTHOR_{name.upper()}", f"GIT_COMMITTER_{name.upper()}")
        if all(os.environ.get(part) for part in parts):
            identity.add(f"user.{name}")
    return judge_git(said, identity=tuple(identity))


def _agent(agent: Agent, path: str) -> Finding:
    said = ask([path, "--version"], seconds=SECONDS)
    return judge_agent(agent, path, said, _credentials(agent))


def _credentials(agent: Agent) -> str | None:
    """The first variable or file that seems to hold credentials; it isn't read."""
    for name in agent.variables:
        if os.environ.get(name):
            return name
    return next((str(file) for file in _files(agent) if file.exists()), None)


def _files(agent: Agent) -> list[Path]:
    home = Path("~").expanduser()
    match agent.name:
        case "claude":
            folder = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
            return [folder / ".credentials.json", folder / ".claude.json", home / ".claude.json"]
        case "codex":
            return [Path(os.environ.get("CODEX_HOME") or home / ".codex") / "auth.json"]
        case _:
            data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
            return [data / agent.name / "auth.json"]
