"""The worker's side of an executor: one child that has loaded one bundle and runs attempts.

Everything that a body can do to its process (hang, crash, flood, leak) ends here as a typed
outcome of the one attempt that it ran, and with an executor that is not used again.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from smithers.process.attempt_files import log_path, spill_path
from smithers.process.channel import (
    ChannelClosedError,
    FrameTooLargeError,
    decode,
    readable,
)
from smithers.process.child import Child, ChildSpec
from smithers.process.environment import Mark, child_environment
from smithers.process.nursery import PYTHON
from smithers.process.settings import Settings
from smithers.sql.rows import Json
from smithers.worker import memory
from smithers.worker.attempt import Attempt, Verdict
from smithers.worker.deadlines import Deadlines
from smithers.worker.outcome import (
    EXECUTOR_DIED,
    Cancelled,
    Dropped,
    Finished,
    Outcome,
    Released,
    outcome_of,
    parse_error,
)
from smithers.workflow.attempts import LOG_OVERFLOW, OUT_OF_MEMORY, AttemptError

HOST: Final = "smithers.worker.host"
CHILDREN: Final = (HOST,)
"""What a nursery imports for executors."""
MAX_ATTEMPTS: Final = 1_000
MAX_MEMORY_BYTES: Final = 256 * 1024 * 1024
_SEND_SECONDS = 60.0
_MEBIBYTE = 1024 * 1024


class Executor:
    """One child. One thread at a time runs an attempt in it; `usable` says whether another may."""

    def __init__(self, child: Child, settings: Settings) -> None:
        self.child = child
        self.usable = True
        self._settings = settings
        self._attempts = 0

    def retire(self) -> None:
        """Run no further attempt."""
        self.usable = False

    def run(self, attempt: Attempt) -> Outcome:
        """Run one attempt to its end, whatever that is; afterwards none of its processes lives,
        other than the executor itself while it is `usable`.
        """
        self._attempts += 1
        before = memory.oom_kills()
        task = attempt.task
        self.child.output.begin(
            log_path(self._settings.home, task),
            limit=self._settings.log_limit_mb * _MEBIBYTE,
            on_overflow=lambda: self._on_overflow(attempt),
        )
        started = time.monotonic()
        attempt.attach(self.child, self)
        try:
            output = self._exchange(attempt)
        except AttemptError as error:
            failed: AttemptError | None = error
            output = b""
        else:
            failed = None
        finally:
            attempt.detach()
        seconds = time.monotonic() - started - attempt.stood_still()
        if not self.usable or attempt.verdict is not None:
            self.close()
        if failed is not None and failed.code == EXECUTOR_DIED:
            failed = self._death(failed, oom_grew=memory.oom_kills() > before)
        tail = self.child.output.end()
        return self._outcome(attempt, failed, tail, Finished(output, max(0.0, seconds)))

    def close(self) -> None:
        """Kill the child with all that it started; twice is fine."""
        self.usable = False
        self.child.kill()

    def dispose(self) -> None:
        """Kill, and give the descriptors back; nothing else may be called afterwards."""
        self.close()
        self.child.close()

    def _exchange(self, attempt: Attempt) -> bytes:
        """Send the attempt and wait for its result. Raises AttemptError."""
        try:
            self._send(attempt)
            return self._await_result(attempt)
        except ChannelClosedError as error:
            self.usable = False
            raise AttemptError(EXECUTOR_DIED, "the executor ended") from error
        except (FrameTooLargeError, ValueError, TimeoutError, RecursionError) as error:
            # Nonsense: user code can write to any descriptor.
            self.usable = False
            self.child.kill()
            raise AttemptError(EXECUTOR_DIED, f"the executor broke its channel: {error}") from error
        except AttemptError as error:
            if error.code == EXECUTOR_DIED:
                self.usable = False
            raise

    def _send(self, attempt: Attempt) -> None:
        self.child.channel.send(
            {
                "do": "run",
                "descriptor": attempt.task.descriptor,
                "needs": attempt.task.needs,
                "spill": str(spill_path(self._settings.home, attempt.task)),
            },
            timeout=_SEND_SECONDS,
        )

    def _await_result(self, attempt: Attempt) -> bytes:
        channel = self.child.channel
        deadlines = Deadlines(attempt, self.child.output)
        fds = [channel.fileno(), self.child.pidfd, attempt.wake.fileno()]
        has_output = False
        while True:
            ready = readable(fds, deadlines.left())
            while (frame := channel.poll_bytes()) is not None:
                if has_output:
                    return frame
                has_output = self._take(frame, attempt, deadlines)
            if self.child.pidfd in ready:
                raise AttemptError(EXECUTOR_DIED, "the executor ended")
            if attempt.wake.fileno() in ready:
                attempt.wake.clear()
            if attempt.verdict is not None:
                raise AttemptError(EXECUTOR_DIED, "the attempt was ended")
            if (late := deadlines.missed()) is not None:
                self.usable = False
                self.child.kill()
                raise late

    def _take(self, frame: bytes, attempt: Attempt, deadlines: Deadlines) -> bool:
        """Note a start, a heartbeat or the head of a result; true when the output follows it.

        Raises AttemptError, the one that the executor sent.
        """
        message = decode(frame)
        match message:
            case {"is": "begun"}:
                deadlines.begin()
                return False
            case {"is": "heartbeat", "data": data}:
                attempt.note_beat(data)
                return False
            case {"is": "result", "survivors": bool(survivors), "memory": int(used), **rest}:
                if survivors or not self._worth_keeping(used):
                    self.usable = False
                if "error" in rest:
                    raise parse_error(rest["error"])
                return True
            case _:
                raise ValueError(f"it sent {frame[:100]!r}")

    def _worth_keeping(self, memory_bytes: int) -> bool:
        return self._attempts < MAX_ATTEMPTS and memory_bytes <= MAX_MEMORY_BYTES

    def _on_overflow(self, attempt: Attempt) -> None:
        attempt.end(Verdict.OVERFLOW)

    def _death(self, error: AttemptError, *, oom_grew: bool) -> AttemptError:
        """What ended the child, in words."""
        code = self.child.wait(5.0)
        if code == -signal.SIGKILL and oom_grew:
            return AttemptError(OUT_OF_MEMORY, "the kernel killed it for want of memory")
        how, details = death_in_words(code)
        return AttemptError(EXECUTOR_DIED, f"{error.message}: {how}", details)

    def _outcome(
        self, attempt: Attempt, failed: AttemptError | None, tail: str, finished: Finished
    ) -> Outcome:
        match attempt.verdict:
            case Verdict.LOST:
                return Dropped()
            case Verdict.OVERFLOW:
                limit = self._settings.log_limit_mb
                failed = AttemptError(LOG_OVERFLOW, f"it printed more than {limit} MiB")
            case Verdict.CANCELLED | Verdict.RELEASED if failed is not None:
                return Cancelled() if attempt.verdict is Verdict.CANCELLED else Released()
            case _:
                pass  # what has been done is kept, though its time was up
        if failed is None:
            return finished
        return outcome_of(failed, attempt.task, tail)


def start_executor(
    spawn: Callable[[ChildSpec], Child], folder: Path, *, mark: Mark, settings: Settings
) -> Executor:
    """Start an executor on the bundle unpacked at `folder`. Raises OSError, SpawnRefusedError."""
    spec = ChildSpec(
        argv=[*PYTHON, HOST, str(folder)],
        environ=child_environment(
            mark, home=str(settings.home), database_url=settings.database_url
        ),
        mark=mark,
    )
    return Executor(spawn(spec), settings)


def death_in_words(code: int | None) -> tuple[str, Json]:
    """How a process ended, from its exit code."""
    if code is None:
        return "it can't be killed", {}
    if code >= 0:
        return f"it exited with code {code}", {"exit_code": code}
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"it was ended by {name}", {"signal": name}
