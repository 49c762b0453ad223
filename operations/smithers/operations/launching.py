"""Start a detached engine and learn from it that it has begun, or why it hasn't."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from smithers.operations.engine import EngineLock
from smithers.operations.errors import ENGINE_FAILED, OperationError
from smithers.operations.ids import new_run_id
from smithers.operations.results import Admitted, Engine
from smithers.operations.session import Session
from smithers.operations.up import Request, log_path
from smithers.process.settings import Settings
from smithers.sql import reads
from smithers.sql.rows import Json

_REPORT_SECONDS: Final = 120.0
_WORDS: Final = ("-P", "-m", "smithers.cli.main", "engine")


def launch_run(
    settings: Settings, request: Request, *, park: bool = False, slots: int | None = None
) -> tuple[Admitted, Engine]:
    """Start an engine that admits a run and goes on with it, whatever becomes of this process.

    Returns when the run is admitted. Raises what admission raises, and OperationError
    (ENGINE_FAILED).
    """
    run_id = request.run_id or new_run_id()
    filled = {**request.to_json(), "run_id": run_id}
    filled["request_id"] = request.request_id or uuid4().hex
    order: Json = {"request": filled, "park": park, "slots": slots}
    report, engine = _launch(settings, order, log_path(settings, run_id))
    return Admitted(**report["admitted"]), engine


def wake(opened: Session, run_id: str, *, anywhere: bool = False) -> Engine | None:
    """Start an engine for a run that a decision has made runnable, if the database is embedded,
    or `anywhere`.

    None when the run needs nobody, and when an engine is there. A fleet that serves may belong
    to an `up` that leaves soon, so it is no reason not to start one: the engine stands by. Raises
    OperationError (ENGINE_FAILED).
    """
    if not (anywhere or opened.database.embedded):
        return None
    watch = reads.read_watch(opened.connection, run_id)
    if watch is None or watch["status"] != "running":
        return None
    if EngineLock.of(opened.settings, opened.database).is_taken():
        return None
    _, engine = _launch(opened.settings, {"request": None}, log_path(opened.settings, run_id))
    return engine


def _launch(settings: Settings, order: Json, log: Path) -> tuple[Json, Engine]:
    log.parent.mkdir(parents=True, exist_ok=True)
    fresh = not log.exists()
    reading, writing = os.pipe()
    try:
        process = _spawn(settings, order, log, writing)
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as report:
        answer = _read_report(report.fileno())
    _reap_later(process)
    if answer is None:
        raise OperationError(
            ENGINE_FAILED,
            "the detached engine ended before it had begun",
            details={"pid": process.pid, "log": str(log)},
            hint=f"{log} holds what it said",
        )
    if "error" in answer:
        if fresh:
            log.unlink(missing_ok=True)
        raise _error(answer["error"])
    return answer, Engine(process.pid, str(log))


def _reap_later(process: subprocess.Popen[bytes]) -> None:
    """Take the engine's status when it ends: this process may outlive it by days."""
    process.returncode = 0  # let Popen not complain that it still runs

    def reap() -> None:
        with suppress(ChildProcessError):
            os.waitpid(process.pid, 0)

    threading.Thread(target=reap, name="engine-reaper", daemon=True).start()


def _spawn(settings: Settings, order: Json, log: Path, writing: int) -> subprocess.Popen[bytes]:
    words = ["--report-fd", str(writing), "--log", str(log)]
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, *_WORDS, *words],
            env={**os.environ, **settings.environment()},
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            start_new_session=True,
            pass_fds=(writing,),
        )
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(order).encode())
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has ended: the report says why, or that there is none
    return process


def _read_report(descriptor: int) -> Json | None:
    """Read until the engine closes its end; None when it said nothing."""
    deadline = time.monotonic() + _REPORT_SECONDS
    text = b""
    while (left := deadline - time.monotonic()) > 0:
        if select.select([descriptor], [], [], left)[0]:
            part = os.read(descriptor, 65536)
            if not part:
                break
            text += part
    return None if not text else dict(json.loads(text))


def _error(body: Json) -> OperationError:
    return OperationError(
        str(body["code"]), str(body["message"]), details=body["details"], hint=body["hint"]
    )
