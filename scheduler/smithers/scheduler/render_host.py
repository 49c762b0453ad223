"""The renderer: a child that has loaded one code version and turns rows into a frame.

It is the only process of a scheduler that runs a user's workflow function. It reads one request
at a time from its channel and answers each with `{"ok": …}` or `{"error": …}`; what user code
prints goes to a pipe that has nothing to do with the answers. Its parent bounds its time, the
limit set here bounds its memory; whatever ends it fails one run.

    python -P -m smithers.scheduler.render_host FOLDER MEMORY_BYTES
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from smithers.process.channel import Channel, ChannelClosedError, FrameTooLargeError
from smithers.process.child import enter_child
from smithers.sql.rows import Json
from smithers.workflow.errors import RENDER_FAILED


def main() -> None:
    """Serve requests until the parent closes the channel or dies."""

    def work(folder: Path) -> Callable[[Json], Json]:
        from smithers.scheduler.render_work import Work

        return Work(folder).answer

    host(work)


def host(make: Callable[[Path], Callable[[Json], Json]]) -> None:
    """Be a child of `Renderer`: bounded, and answering by what `make` gives for the folder."""
    channel = enter_child()
    folder, memory = Path(sys.argv[1]), int(sys.argv[2])
    # Private writable memory only: mapped files and reserved stacks aren't what a leak grows.
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Where a hang is, told from within the signal handler: Python itself may be stuck.
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)
    _serve(channel, make(folder), memory=memory)


def _serve(channel: Channel, answer: Callable[[Json], Json], *, memory: int) -> None:
    while True:
        try:
            request = cast("Json", channel.receive())
        except ChannelClosedError:
            break
        reply = answer(request)
        if request["do"] != "load" and _resident_bytes() > memory // 2:
            # A leak of many renders must not fail the one that happens to be the last.
            reply["broken"] = True
        try:
            _send(channel, reply)
        except ChannelClosedError:
            break
    # User code may have left threads and exit handlers behind; nothing here needs them.
    os._exit(0)


def _resident_bytes() -> int:
    # Not ru_maxrss: that begins with what the parent had when it forked.
    resident = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(resident) * resource.getpagesize()


def _send(channel: Channel, reply: Json) -> None:
    try:
        channel.send(reply)
    except (TypeError, ValueError, RecursionError, MemoryError, FrameTooLargeError) as error:
        message = f"the frame can't be handed over: {type(error).__name__}: {error}"
        refusal: Json = {"code": RENDER_FAILED, "message": message, "details": {}, "hint": None}
        channel.send({"error": refusal, "broken": True})


if __name__ == "__main__":
    main()
