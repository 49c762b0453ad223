"""A terminal for tests: a pseudo-terminal's other end, and what a person would see on it."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_CODE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(\r)|(\n)|(.)", re.DOTALL)


@dataclass
class Screen:
    """As much of a terminal as is used: characters, returns, erased lines, the cursor upwards.

    `rows` are never lost at the top; the cursor can't go above the last `height` of them.
    """

    width: int
    height: int
    rows: list[list[str]] = field(default_factory=lambda: [[]])
    joined: set[int] = field(default_factory=set[int])
    """Rows that the terminal began itself, as the one before was full."""
    x: int = 0
    y: int = 0
    cursor: bool = True
    unknown: list[str] = field(default_factory=list[str])

    def feed(self, text: str) -> None:
        for found in _CODE.finditer(text):
            numbers, letter, back, down, char = found.groups()
            if letter:
                self._control(numbers, letter)
            elif back:
                self.x = 0
            elif down:
                self._down()
            else:
                self._put(char)

    def _control(self, numbers: str, letter: str) -> None:
        match letter:
            case "h" | "l" if numbers == "?25":
                self.cursor = letter == "h"
            case "A":
                self.y = max(len(self.rows) - self.height, 0, self.y - int(numbers or 1))
            case "K" if numbers == "2":
                self.rows[self.y] = []
                self.joined.discard(self.y)
            case "m":
                pass
            case _:
                self.unknown.append(f"{numbers}{letter}")

    def _down(self) -> None:
        self.y += 1
        if self.y == len(self.rows):
            self.rows.append([])

    def _put(self, char: str) -> None:
        if self.x >= self.width:
            self._down()
            self.joined.add(self.y)
            self.x = 0
        row = self.rows[self.y]
        row.extend(" " * (self.x + 1 - len(row)))
        row[self.x] = char
        self.x += 1

    def narrow(self, width: int) -> None:
        """Become narrower as most terminals do: rows that are too long are broken anew."""
        rows: list[list[str]] = []
        for number, row in enumerate(self.rows):
            pieces = [row[at : at + width] for at in range(0, len(row), width)] or [[]]
            if number == self.y:
                self.y, self.x = len(rows) + len(pieces) - 1, len(pieces[-1])
            self.joined |= {len(rows) + 1 + extra for extra in range(len(pieces) - 1)}
            rows += pieces
        self.rows, self.width = rows, width

    @property
    def lines(self) -> list[str]:
        """What is to be read, without the empty rows."""
        found = ["".join(row).rstrip() for row in self.rows]
        return [line for line in found if line]


@dataclass
class Terminal:
    """A pseudo-terminal, what was written to it, and the process that has it."""

    master: int
    screen: Screen
    raw: str = ""
    process: subprocess.Popen[bytes] | None = None
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=codecs.getincrementaldecoder("utf-8")
    )

    def read(self, seconds: float = 0.0) -> bool:
        """Take what has come, or comes in this time; False at the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        text = self._decoder.decode(data, final=not data)
        self.raw += text
        self.screen.feed(text)
        return bool(data)

    def read_until(self, text: str, *, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.raw:
            assert time.monotonic() < deadline, f"{text!r} not within {seconds} s:\n{self.raw}"
            assert self.read(0.1), f"{text!r} never came:\n{self.raw}"

    def finish(self, *, seconds: float = 60.0) -> int:
        """Read to the end; give the exit code."""
        assert self.process is not None
        deadline = time.monotonic() + seconds
        while self.read(0.1):
            assert time.monotonic() < deadline, f"it goes on after {seconds} s:\n{self.raw}"
        return self.process.wait(timeout=10)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


@contextmanager
def terminal(width: int, height: int) -> Generator[tuple[Terminal, int]]:
    """A pseudo-terminal, and the descriptor that a program is given."""
    master, slave = pty.openpty()
    try:
        opened = Terminal(master, Screen(width, height))
        opened.resize(width, height)
        yield opened, slave
    finally:
        os.close(master)


@contextmanager
def running(
    words: Sequence[str], *, environment: dict[str, str], folder: Path, width: int, height: int
) -> Generator[Terminal]:
    """A command that has a terminal of its own, so that its Ctrl-C is a key."""
    with terminal(width, height) as (opened, slave):
        # The first terminal that the leader of a session opens becomes that session's own.
        take = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); "
        take += "os.execv(sys.argv[1], sys.argv[1:])"
        opened.process = subprocess.Popen(
            [sys.executable, "-c", take, *words],
            env={"TERM": "xterm-256color", **environment},
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        try:
            yield opened
        finally:
            if opened.process.poll() is None:
                opened.process.kill()
                opened.process.wait(timeout=10)
