"""How the command ends when something is wrong: one clear line, a hint, an exit code."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from smithers.workflow.errors import SmithersError

FAILED = 1
REFUSED = 4
INTERRUPTED = 130
PIPE_CLOSED = 141
_LONGEST = 1_000


def report(error: BaseException, arguments: Sequence[str]) -> int:
    """Tell what went wrong, on standard error and with --json as an object too; give the code.

    The object goes to standard output, where a program looks for the result.
    """
    match error:
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED
        case BrokenPipeError():
            _forget_output()
            return PIPE_CLOSED
        case SmithersError():
            return _tell(error, arguments, getattr(error, "exit_code", REFUSED))
        case click.exceptions.NoArgsIsHelpError():
            _say(error.format_message())
            return REFUSED
        case click.ClickException():
            return _tell(_of_click(error), arguments, REFUSED)
        case _:
            return _tell(_of_bug(error), arguments, FAILED)


def _tell(error: SmithersError, arguments: Sequence[str], code: int) -> int:
    line = shortened(" ".join(error.message.split()))
    _say(f"error[{error.code}]: {line}")
    if error.hint:
        _say(f"hint: {shortened(error.hint)}")
    if wants_json(arguments):
        try:
            print(json.dumps(error.to_json(), default=str), flush=True)  # noqa: T201
        except BrokenPipeError:
            _forget_output()
    return code


def shortened(text: str) -> str:
    """A text that fits a screen: what is left out of a long one is its middle."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}…{text[-half:]}"


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether --json was given, known also when the rest couldn't be parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _say(line: str) -> None:
    """To standard error, also what its encoding can't show."""
    text = line.encode(sys.stderr.encoding or "utf-8", "backslashreplace")
    print(text.decode(sys.stderr.encoding or "utf-8"), file=sys.stderr, flush=True)  # noqa: T201


def _of_click(error: click.ClickException) -> SmithersError:
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if isinstance(context, click.Context) else None
    return SmithersError("USAGE", error.format_message(), hint=hint)


def _of_bug(error: BaseException) -> SmithersError:
    """An error that nobody foresaw; its traceback goes to a file, or is shown when debugging."""
    text = "".join(traceback.format_exception(error))
    told = f"{type(error).__name__}: {error}".strip(": ")
    if os.environ.get("SMITHERS_LOG_LEVEL", "").lower() == "debug":
        _say(text)
        return SmithersError("INTERNAL", told, hint="this is a bug of Smithers, please report it")
    path = _keep(text)
    return SmithersError(
        "INTERNAL",
        told,
        details={"traceback": path},
        hint=f"this is a bug of Smithers, please report it with {path}",
    )


def _keep(text: str) -> str:
    """Write a traceback to `.smithers/logs` where there is one, else to a temporary file."""
    logs = Path(os.environ.get("SMITHERS_HOME") or ".smithers") / "logs"
    try:
        if logs.parent.is_dir():
            logs.mkdir(exist_ok=True)
        handle, path = tempfile.mkstemp(
            prefix="smithers-crash-", suffix=".log", dir=logs if logs.is_dir() else None
        )
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as exc:
        return f"SMITHERS_LOG_LEVEL=debug (no file could be written: {exc.strerror})"
    return path


def _forget_output() -> None:
    """Nobody reads any more: send the rest nowhere, so that Python's exit is quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
