"""What `smithers up` shows: a live tree on a terminal, plain lines elsewhere, nothing to nobody."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from smithers.sql import reads
from support.fleet import Fleet, fleet, processes_marked
from support.runs import WORKFLOWS, connect, status
from support.screen import Terminal, running
from support.waiting import until

MIXED = str(WORKFLOWS / "mixed.py")
SMITHERS = [sys.executable, "-m", "smithers.cli.main"]
BEFORE_THE_GATE = ["✓ first", "✓ fan:0", "✓ fan:1", "✓ fan:2", "✓ loop", "✓ lap"]
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def words(whole: Fleet, run_id: str, *, width: int = 3, seconds: float = 0.05) -> list[str]:
    shape = json.dumps({"log": str(whole.folder / "log"), "seconds": seconds, "width": width})
    return [*SMITHERS, "up", MIXED, "--run-id", run_id, "--input", shape]


@contextmanager
def seen(whole: Fleet, run_words: list[str], **environment: str) -> Generator[Terminal]:
    """A command at a terminal of 70 columns and 30 lines."""
    clean = {
        name: value
        for name, value in whole.environment().items()
        if name not in {"TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS"}
    }
    with running(
        run_words, environment={**clean, **environment}, folder=whole.folder, width=70, height=30
    ) as opened:
        yield opened


def piped(whole: Fleet, run_words: list[str], **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        run_words,
        env={**whole.environment(), **environment},
        cwd=whole.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_a_terminal_sees_a_tree_and_a_pipe_sees_lines(database: str, tmp_path: Path) -> None:
    roles = ["scheduler", "worker", "supervisor"]
    with fleet(database, tmp_path, roles) as whole, connect(database) as connection:
        # Else `up` would start a fleet of its own, and say so in a long line.
        until(lambda: len(reads.read_processes(connection)) == len(roles), seconds=30)
        with seen(whole, words(whole, "tty")) as opened:
            assert opened.finish() == 3
        shown = opened.screen.lines
        for node in BEFORE_THE_GATE:
            assert any(line.lstrip().startswith(f"{node}  ") for line in shown), (node, shown)
        gate = shown.index("  ⏸ gate  waiting-approval")
        assert shown[gate + 1] == "    smithers approve tty --node gate"
        assert shown[-3].startswith("run tty: waiting-approval"), "then the end as ever"
        assert sum("run tty  mixed" in line for line in shown) == 1, "it was drawn over"
        assert opened.raw.count("run tty  mixed") > 2
        assert "● " in opened.raw
        assert opened.screen.cursor
        assert not opened.screen.joined, "no line was longer than the terminal"
        assert not opened.screen.unknown

        code, out, err = piped(whole, words(whole, "pipe"))
        assert code == 3, err
        assert "\x1b" not in out + err
        told = err.splitlines()
        assert told[0] == "run pipe of mixed"
        for node in ("first", "fan:0", "fan:1", "fan:2", "lap", "lap #1", "lap #2"):
            assert sum(line.startswith(f"{node} finished") for line in told) == 1, err
        assert told[-1] == "gate waits for a person: smithers approve pipe --node gate"

        for run_id in ("tty", "pipe"):
            assert whole.cli("approve", run_id, "--no-resume").returncode == 0
            assert whole.cli("signal", run_id, "go", "--data", "{}", "--no-resume").returncode == 0
        again = [*SMITHERS, "up", MIXED, "--resume", "--run-id"]
        with seen(whole, [*again, "tty"], NO_COLOR="1", COLUMNS="40") as opened:
            assert opened.finish() == 0
        assert any(re.match(r"\d+ of \d+ nodes were fin", x) for x in opened.screen.lines)
        assert "  ✓ last  finished" in "\n".join(opened.screen.lines)
        assert not COLOUR.search(opened.raw)
        assert opened.screen.cursor

        until(lambda: status(connection, "pipe") == "finished")
        code, out, err = piped(whole, [*again, "pipe"], FORCE_COLOR="1")
        assert code == 0
        assert COLOUR.search(out), "the end has its colour"
        assert "\x1b" not in COLOUR.sub("", out + err), "and nothing else than colours"
        assert "first" not in err, "old news are not told again"
        assert re.search(r"^(\S+m)?11 of 11 nodes were finished before", err, re.MULTILINE), err

        closed_descriptors(whole, [*again, "pipe"])


def closed_descriptors(whole: Fleet, resume: list[str]) -> None:
    """Every command does what it does, whoever listens."""
    everything = "<&- >&- 2>&-"
    commands = [
        *(([*SMITHERS, "ps"], closing, 0) for closing in ("<&-", ">&-", "2>&-", everything)),
        *((resume, closing, 0) for closing in ("<&-", ">&-", "2>&-", everything)),
        ([*SMITHERS, "status", "pipe"], ">&-", 0),
        ([*SMITHERS, "status", "none"], ">&-", 4),
        ([*SMITHERS, "status", "none"], everything, 4),
    ]
    for command, closing, code in commands:
        done = piped(whole, ["sh", "-c", f'exec "$@" {closing}', "sh", *command])
        assert done[0] == code, (closing, command, done)
        assert "Traceback" not in done[2]
        assert "INTERNAL" not in done[2]


@pytest.mark.slow
def test_leaving_leaves_a_clean_terminal_and_a_resumable_run(database: str, tmp_path: Path) -> None:
    with fleet(database, tmp_path) as whole, connect(database) as connection:
        with seen(whole, words(whole, "r1", width=40, seconds=0.6)) as opened:
            opened.read_until("● \x1b[0mfan:")
            assert not opened.screen.cursor
            until(lambda: reads.read_watch(connection, "r1")["claimed"])  # type: ignore[index]
            opened.type("\x03")
            assert opened.finish() == 130
        shown = opened.screen.lines
        assert any(line.startswith("leaving: ") for line in shown), shown
        assert sum("run r1  mixed  running" in line for line in shown) == 1, shown
        assert "left; go on with: smithers up" in "\n".join(shown)
        assert "● fan" not in "\n".join(shown), "what was given back doesn't run"
        assert opened.screen.cursor
        assert status(connection, "r1") == "running"
        until(lambda: not processes_marked(str(tmp_path / ".smithers")), seconds=10)

        piping = 'set -o pipefail; "$@" 2>&1 | head -1'
        resume = [*SMITHERS, "up", MIXED, "--run-id", "r1", "--resume"]
        code, out, err = piped(whole, ["bash", "-c", piping, "bash", *resume])
        assert code in (0, 141), (code, out, err)
        assert (out, err) == ("run r1 of mixed is there\n", "")
        assert status(connection, "r1") == "running", "it left as soon as nobody read"
        until(lambda: not processes_marked(str(tmp_path / ".smithers")), seconds=10)
