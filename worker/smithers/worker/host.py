"""The main of an executor: load one bundle, run attempts one after another.

    python -P -m smithers.worker.host FOLDER      # started by a worker, with a channel

Each attempt is one message `{"do": "run", descriptor, needs, spill}`. When its code is loaded,
`{"is": "begun"}` goes back; heartbeats are `{"is": "heartbeat"}`. Its end is `{"is": "result"}`,
followed by a frame with the JSON text of the output if there is one.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from pathlib import Path

from smithers.process.channel import Channel, ChannelClosedError
from smithers.process.child import enter_child
from smithers.process.procfs import memory_bytes
from smithers.sql.rows import Json
from smithers.worker.invoke import Code, guarded, prepare
from smithers.worker.result import encode_output
from smithers.worker.task import BEATS
from smithers.workflow.attempts import AttemptError, validated
from smithers.workflow.errors import SmithersError


def main() -> None:
    """Serve until the worker closes the channel."""
    channel = enter_child()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # printing must not fail a task
    folder = Path(sys.argv[1])
    home = Path.cwd()
    host = Host(channel, folder)
    try:
        while True:
            message = channel.receive()
            assert isinstance(message, dict)
            host.run(message)
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.chdir(home)
    except ChannelClosedError:
        # Nobody is left to answer to, and user threads must not keep the process.
        os._exit(0)


class Host:
    """Runs one attempt after another."""

    def __init__(self, channel: Channel, folder: Path) -> None:
        self._channel = channel
        self._folder = folder
        self._code: Code | None = None

    def run(self, message: Json) -> None:
        """Run one attempt and send how it ended."""
        BEATS.open(lambda data: self._channel.send({"is": "heartbeat", "data": data}))
        head: Json = {"is": "result"}
        frames: list[bytes] = []
        try:
            frames.append(self._output(message))
        except AttemptError as error:
            head["error"] = {
                "code": error.code,
                "message": error.message,
                "details": error.details,
            }
        finally:
            BEATS.close()
        _flush()
        head |= {"survivors": _survivors(), "memory": memory_bytes(os.getpid())}
        text = json.dumps(head, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._channel.send_bytes(text, *frames)

    def _output(self, message: Json) -> bytes:
        code = self._load()
        descriptor = message["descriptor"]
        model = code.model(descriptor["output"]["model"])
        if descriptor["kind"] == "agent":
            self._channel.send({"is": "begun"})
            answer = _ask_agents(descriptor)
            value: object = guarded(code, lambda: validated(answer, model))
        else:
            needs = message["needs"] or {}
            body = guarded(code, lambda: prepare(code, descriptor, needs))
            self._channel.send({"is": "begun"})
            value = guarded(code, body)
        return guarded(code, lambda: encode_output(value, model, Path(message["spill"])))

    def _load(self) -> Code:
        if self._code is None:
            try:
                self._code = Code(self._folder)
            except SmithersError as error:
                raise AttemptError(error.code, error.message, error.details) from error
        return self._code


def _ask_agents(descriptor: Json) -> Json:
    from smithers.agents.run import AgentError, run_agents

    try:
        return run_agents(
            descriptor.get("agents") or [],
            descriptor.get("prompt") or "",
            schema=descriptor["output"].get("schema", {}),
        )
    except AgentError as error:
        raise AttemptError(error.code, error.message, error.details) from error


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001, S112  # user code may have put anything in its place
            continue


def _survivors() -> bool:
    """Reap what the body has left; true when some of it lives.

    This process adopts its orphaned descendants, so that one call finds the last of them.
    """
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


if __name__ == "__main__":
    main()
