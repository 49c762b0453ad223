"""Write a dump: under the target's name stands a whole one or none."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from smithers.sql.archive.errors import DUMP_FAILED, ArchiveError
from smithers.sql.archive.programs import connection_environment
from smithers.sql.embedded.complaint import complaint

_OPTIONS: Final = (
    "--format=custom",
    "--no-owner",
    "--no-privileges",
    "--no-password",
    "--schema=smithers",
    "--schema=smithers_p[0-9]*",
)


def write_to_file(dsn: str, pg_dump: Path, path: Path) -> int:
    """Dump a database to a file, whole or not at all, and give its bytes.

    It reads one snapshot and disturbs nobody. Raises `ArchiveError`.
    """
    with _renamed_when_whole(path) as part:
        done = subprocess.run(
            [pg_dump, *_OPTIONS, f"--file={part}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=_environment(dsn),
            check=False,
        )
        _refuse_failed(done.returncode, done.stderr)
        return part.stat().st_size


def write_to_stream(dsn: str, pg_dump: Path, stream: IO[bytes]) -> None:
    """Dump a database to an open stream; what came before an error is there then.

    The stream isn't handed to pg_dump itself: it would write its table of contents twice into a
    redirected file. Raises `ArchiveError`, OSError of the stream.
    """
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            [pg_dump, *_OPTIONS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=_environment(dsn),
        ) as process,
    ):
        assert process.stdout is not None
        shutil.copyfileobj(process.stdout, stream)
        stream.flush()
        code = process.wait()
        said.seek(0)
        _refuse_failed(code, said.read())


def _environment(dsn: str) -> dict[str, str]:
    return {**os.environ, **connection_environment(dsn), "LC_ALL": "C"}


def _refuse_failed(code: int, said: bytes) -> None:
    if code != 0:
        cause = complaint(said)
        raise ArchiveError(DUMP_FAILED, f"pg_dump failed: {cause}", details={"cause": cause})


@contextmanager
def _renamed_when_whole(path: Path) -> Generator[Path]:
    """A file beside `path`, only for us, that takes its place when nothing went wrong."""
    if path.exists() and not path.is_file():
        raise ArchiveError(
            DUMP_FAILED, f"{path} is not a file", hint="name a file, or write to - and redirect it"
        )
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
        part = Path(name)
        try:
            yield part
            part.replace(path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
    except OSError as exc:
        raise ArchiveError(
            DUMP_FAILED,
            f"{path} can't be written: {exc.strerror}",
            details={"cause": str(exc)},
            hint="name a file in a folder that exists and can be written",
        ) from exc
