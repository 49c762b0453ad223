"""The agent that is any program: prompt on standard input, answer on standard output.

    command(["my-agent", "--print"], env={"MODE": "fast"})

The answer is the last JSON object that it prints; the task's output model says what it must
hold. What it prints goes to the attempt's log too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

from smithers.agents.answer import last_object
from smithers.agents.errors import (
    AGENT_ANSWER_MISSING,
    AGENT_FAILED,
    AGENT_MISSING,
    AgentError,
)
from smithers.workflow.agent import AgentSpec

_KEPT_BYTES = 32 * 1024 * 1024
_DRAIN_SECONDS = 1.0
SCHEMA_VARIABLE = "SMITHERS_OUTPUT_SCHEMA"


def command(
    argv: Sequence[str], *, name: str = "command", env: Mapping[str, str] | None = None
) -> AgentSpec:
    """An agent that is started as `argv`, with `env` (never a secret) added to its environment.

    It finds the JSON Schema of the wanted answer in the variable SMITHERS_OUTPUT_SCHEMA.
    """
    return AgentSpec("command", name, {"argv": list(argv), "env": dict(env or {})})


def run_command(
    options: Mapping[str, Any], prompt: str, *, schema: Mapping[str, object]
) -> dict[str, Any]:
    """Run the program to its end and give its answer.

    Its own exit counts, not the end of its pipes: a process that it leaves behind may keep
    them open. Raises AgentError: AGENT_MISSING, AGENT_FAILED, AGENT_ANSWER_MISSING.
    """
    argv = [str(word) for word in options.get("argv") or ()]
    environ = {**os.environ, **options.get("env", {}), SCHEMA_VARIABLE: json.dumps(schema)}
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, bufsize=0
        )
    except (OSError, ValueError, IndexError) as error:
        raise AgentError(AGENT_MISSING, f"{argv[:1]} can't be started: {error}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    reader = _Reader(process.stdout)
    reader.start()
    threading.Thread(target=_feed, args=(process.stdin, prompt), daemon=True).start()
    code = process.wait()
    reader.join(_DRAIN_SECONDS)
    if code != 0:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise AgentError(AGENT_FAILED, f"{argv[0]} ended with {how}", {"exit_code": code})
    answer = last_object(reader.text())
    if answer is None:
        raise AgentError(AGENT_ANSWER_MISSING, f"{argv[0]} printed no JSON object")
    return answer


def _feed(pipe: IO[bytes], prompt: str) -> None:
    try:
        with pipe:
            pipe.write(prompt.encode("utf-8", "surrogatepass"))
    except OSError:
        return  # a program may answer without reading to the end


class _Reader(threading.Thread):
    """Keeps the end of what a program prints, and passes all of it on to the log."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._kept = bytearray()

    def run(self) -> None:
        log = sys.stderr.fileno()
        while data := os.read(self._pipe.fileno(), 1 << 16):
            self._kept += data
            del self._kept[:-_KEPT_BYTES]
            view = memoryview(data)
            while view:
                view = view[os.write(log, view) :]

    def text(self) -> str:
        return bytes(self._kept).decode("utf-8", "replace")
