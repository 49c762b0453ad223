"""Live progress: what is read again, which lines are drawn, and how a terminal is left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from smithers.cli.progress_lines import Paper, draw
from smithers.cli.progress_live import LiveTree
from smithers.cli.progress_model import Progress
from smithers.cli.terminal import console, has_colours
from smithers.operations.following import Notice
from smithers.operations.results import EventLine
from smithers.sql.rows import Json
from smithers.workflow.keys import NodeKey
from support.screen import Terminal, terminal

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
WIDE = Paper(100, 40)
STATES = [
    *("pending", "ready", "in-progress", "finished", "failed", "skipped", "cancelled"),
    *("waiting-approval", "waiting-event", "waiting-timer", "waiting-quota"),
]


def at(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).isoformat()


def row(name: str, state: str, **more: Any) -> Json:
    empty: Json = dict.fromkeys(("due_at", "started_at", "ended_at", "error", "detail"))
    return {
        "node_id": name,
        "iteration": 0,
        "state": state,
        "kind": "compute",
        "attempt": 1,
        **empty,
        **more,
    }


def body(tree: Any) -> Json:
    """The body of a frame: a str is a task, a list a sequence of others, a tuple a parallel."""
    nodes: Json = {}

    def add(item: Any, path: str) -> str:
        if isinstance(item, str):
            nodes[item] = {"kind": "compute", "iteration": 0, "descriptor": None, "gate": ""}
            return item
        key = f"@@{path}"
        kind = "sequence" if isinstance(item, list) else "parallel"
        children = [add(each, f"{path}.{n}") for n, each in enumerate(item)]
        nodes[key] = {"kind": kind, "children": children}
        return key

    return {"root": add(tree, "0"), "nodes": nodes, "chains": {}}


def document(rows: list[Json], tree: Any = None, **more: Any) -> Json:
    """What the query gives."""
    frames = [] if tree is None else [{"frame_no": 1, "base": None, "body": body(tree)}]
    return {
        "now": at(0),
        "status": "running",
        "created_at": at(-65),
        "ended_at": None,
        "frames": frames,
        "nodes": rows,
        **more,
    }


def known(rows: list[Json], tree: Any, **more: Any) -> Progress:
    progress = Progress("r1", "wf")
    progress.update(document(rows, tree, **more), NOW)
    return progress


def event(kind: str, node_id: str | None = None, **payload: Any) -> EventLine:
    return EventLine(1, NOW, kind, node_id, None if node_id is None else 0, None, payload)


def lines(progress: Progress, paper: Paper = WIDE) -> list[str]:
    return ["".join(part.text for part in line) for line in draw(progress, paper, NOW)]


def test_each_state_has_its_line() -> None:
    rows = [
        row("a", "finished", started_at=at(-9), ended_at=at(-8.5)),
        row("b", "in-progress", started_at=at(-3.9), attempt=2),
        row("c", "pending", due_at=at(4), error={"code": "TIMEOUT", "message": "too\nlong"}),
        row("d", "failed", attempt=3, error={"code": "BOOM", "message": "no"}),
        row("gate", "waiting-approval", kind="approval", attempt=0),
        row("ask", "waiting-approval", kind="human", attempt=0),
        row("go", "waiting-event", kind="event", attempt=0, detail={"name": "the go"}),
        row("nap", "waiting-timer", kind="timer", attempt=0, due_at=at(90)),
        row("s", "skipped", attempt=0),
    ]
    tree = ["a", ("b", "c", "d"), "gate", "ask", "go", "nap", "s", "new"]
    assert lines(known(rows, tree)) == [
        "● run r1  wf  running  1 min 5 s  3/9 done",
        "  ✓ a  finished  0.5 s",
        "  ✗ parallel  1/3",
        "    ● b  in-progress  3 s  attempt 2",
        "    ○ c  pending  next try in 4 s  TIMEOUT: too long",
        "    ✗ d  failed  attempt 3  BOOM: no",
        "  ⏸ gate  waiting-approval",
        "    smithers approve r1 --node gate",
        "  ⏸ ask  waiting-approval",
        "    smithers human answer r1 --node ask --data '{}'",
        "  ⏸ go  waiting-event",
        "    smithers signal r1 'the go'",
        "  ⏸ nap  waiting-timer  for 1 min 30 s",
        "  \N{EN DASH} s  skipped",
        "  ○ new  pending",
    ]


def test_a_loop_has_its_pass() -> None:
    tree: Json = {
        "root": "@@0",
        "nodes": {
            "@@0": {"kind": "parallel", "cap": 2, "children": ["loop"]},
            "loop": {"kind": "loop", "iteration": 1, "max": 3, "children": ["lap"]},
            "lap": {"kind": "compute", "iteration": 1},
        },
    }
    rows = [
        row("lap", "finished"),
        row("loop", "finished", kind="loop"),
        row("lap", "in-progress", iteration=1, started_at=at(-1)),
        row("loop", "pending", kind="loop", iteration=1),
    ]
    frames = [{"frame_no": 1, "base": None, "body": tree}]
    progress = Progress("r1", "wf")
    progress.update({**document(rows), "frames": frames}, NOW)
    assert lines(progress)[1:] == ["  ● loop  pass 2 of 3  0/1", "    ● lap  in-progress  1 s"]
    assert progress.done() == (1, 2)


def test_finished_siblings_are_folded_before_anything_else() -> None:
    names = [f"n{number}" for number in range(40)]
    rows = [row(name, "finished") for name in names[:37]]
    rows.append(row("n37", "in-progress", started_at=at(-1)))
    assert lines(known(rows, ["first", tuple(names), "end"]), Paper(80, 10)) == [
        "● run r1  wf  running  1 min 5 s  37/38 done",
        "  ○ first  pending",
        "  ● parallel  37/40",
        "    … 35 finished",
        "    ✓ n35  finished",
        "    ✓ n36  finished",
        "    ● n37  in-progress  1 s",
        "    ○ n38  pending",
        "    ○ n39  pending",
        "  ○ end  pending",
    ]


def test_failures_and_waits_stay_when_everything_else_is_folded() -> None:
    names = [f"n{number}" for number in range(300)]
    rows = [row(name, "in-progress", started_at=at(-1)) for name in names]
    rows[150] = row("n150", "failed", error={"code": "BOOM", "message": "no"})
    shown = lines(known(rows, tuple(names)), Paper(80, 10))
    assert len(shown) <= 10
    assert "  ✗ n150  failed  BOOM: no" in shown
    assert shown[-1] == "  … 295 running"


@st.composite
def runs(draw_: st.DrawFn) -> Progress:
    """Any tree in any state."""
    names: list[str] = []

    def leaf(name: str) -> str:
        names.append(f"{name}{len(names)}")
        return names[-1]

    leaves = st.sampled_from(["a", "long-" * 9, "漢字の名前", "é"]).map(leaf)
    trees = st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=12) | st.lists(inner, min_size=1, max_size=30).map(tuple)
        ),
        max_leaves=60,
    )
    tree = draw_(trees)
    rows = []
    for name in names:
        state = draw_(st.sampled_from([*STATES, "finished", "finished", "unmounted"]))
        if state != "unmounted":
            error = {"code": "X", "message": "m" * draw_(st.integers(0, 200))}
            more = {"started_at": at(-3), "error": error, "attempt": draw_(st.integers(0, 12))}
            rows.append(row(name, state, **more))
    return known(rows, tree)


@settings(max_examples=150, deadline=None)
@given(
    runs(), st.integers(8, 120), st.integers(2, 40), st.sampled_from(["utf-8", "ascii", "latin-1"])
)
def test_any_tree_fits_any_terminal(
    progress: Progress, width: int, height: int, encoding: str
) -> None:
    shown = lines(progress, Paper(width, height, encoding))
    assert 1 <= len(shown) <= height
    for line in shown:
        assert cell_len(line) <= width
        line.encode(encoding)
    assert cell_len(shown[-1]) <= width - 2, "there is room for ^C"


@settings(max_examples=100, deadline=None)
@given(runs(), st.integers(10, 40))
def test_what_is_folded_is_counted(progress: Progress, height: int) -> None:
    """Nothing is lost: lines and counts together are all nodes."""
    shown = lines(progress, Paper(400, height))
    assert progress.root is not None
    if any(re.match(r"\s+… \d+ more$", line) for line in shown):
        return
    leaves, counted = 0, 0
    stack = [progress.root]
    while stack:
        place = stack.pop()
        stack += place.children
        leaves += place.key is not None
    for index, line in enumerate(shown[1:], 1):
        depth = len(line) - len(line.lstrip())
        below = index + 1 < len(shown) and _deeper(shown[index + 1], depth)
        if found := re.match(r"\s+… (.*)", line):
            counted += sum(int(number) for number in re.findall(r"(\d+) ", found[1] + " "))
        elif match := re.match(r"\s+\S (?:sequence|parallel)  \d+/(\d+)", line):
            counted += 0 if below else int(match[1])
        elif not line.lstrip().startswith("smithers "):
            counted += 1
    assert counted == leaves, "\n".join(shown)


def _deeper(line: str, depth: int) -> bool:
    return len(line) - len(line.lstrip()) > depth


def test_only_what_changed_is_read_again() -> None:
    progress = Progress("r1", "wf")
    assert progress.wanted() == (None, 0), "everything, at first"
    progress.update(document([row("a", "ready"), row("b", "pending")], ["a", "b"]), NOW)
    assert progress.wanted() is None, "an idle run costs nothing"
    progress.claimed([("a", 0, 1)])
    assert progress.wanted() == ([("a", 0)], 1)
    progress.update(document([row("a", "in-progress", started_at=at(-1))]), NOW)
    progress.claimed([("a", 0, 1)])
    assert progress.wanted() is None, "it is known to run"
    progress.event(event("attempt-finished", "a"))
    progress.event(event("frame-committed", mounted=[["c", 0, "compute"]]))
    progress.event(event("node-ready", nodes=[["b", 0, 1]]))
    progress.event(event("run-status", nodes=[["d", 2, "cancelled"]]))
    wanted = progress.wanted()
    assert wanted == ([("a", 0), ("b", 0), ("c", 0), ("d", 2)], 1)
    delta = {"frame_no": 4, "base": 1, "body": {"set": body(["a", "b", "c"])["nodes"]}}
    progress.update({**document([row("c", "pending")]), "frames": [delta]}, NOW)
    assert [line.split()[1] for line in lines(progress)[1:]] == ["a", "b", "c"]
    progress.event(event("run-resumed"))
    assert progress.wanted() == ([], 4)


# ── the terminal ──


class Database:
    """What a look would read."""

    def __init__(self, *answers: Json) -> None:
        self.answers = list(answers)

    def __call__(self, *, keys: Sequence[NodeKey] | None, after: int) -> Json:
        return self.answers.pop(0)


def running_since(name: str) -> Json:
    return row(name, "in-progress", started_at=datetime.now(UTC).isoformat())


def current(*rows: Json, tree: Any = None, **more: Any) -> Json:
    return document(list(rows), tree, **{"now": datetime.now(UTC).isoformat(), **more})


@contextmanager
def live_tree(
    width: int = 60, height: int = 12, *, on_broken: Callable[[], None] = lambda: None
) -> Generator[tuple[LiveTree, Terminal]]:
    with (
        terminal(width, height) as (seen, slave),
        os.fdopen(slave, "w", encoding="utf-8") as stream,
    ):
        tree = LiveTree("r1", "wf", stream, on_broken)
        # rich asks the three standard streams for their size, which pytest has taken.
        tree._console._height = height
        yield tree, seen


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_the_tree_is_drawn_over_and_the_last_one_stays() -> None:
    with live_tree() as (tree, seen):
        with tree:
            tree.say("run r1 of wf")
            tree.looked([], Database(current(running_since("a"), tree=["a"])))
            seen.read_until("in-progress")
            assert not seen.screen.cursor
            tree.notice(Notice.DATABASE_AWAY, "gone\x1b[2J")
            tree.event(event("attempt-finished", "a"))
            ended = current(row("a", "finished"), status="finished", ended_at=at(0))
            tree.looked([], Database(ended))
        seen.read_until("finished")
        seen.read()
        assert [line.split("  ")[0] for line in seen.screen.lines] == [
            "run r1 of wf",
            "the database is away, trying again: gone\\x1b[2J",
            "✓ run r1",
            "",
        ]
        assert seen.screen.lines[-1] == "  ✓ a  finished"
        assert seen.screen.cursor
        assert not seen.screen.unknown
        assert "\x1b[32m" in seen.raw


def test_nothing_is_drawn_again_that_is_there() -> None:
    with live_tree() as (tree, seen), tree:
        over = current(row("a", "failed"), tree=["a"], status="failed", ended_at=at(0))
        tree.looked([], Database(over))
        seen.read_until("✗")
        while _more(seen):
            pass
        before = seen.raw
        for _ in range(5):
            tree._guarded(tree._draw)
        assert not _more(seen)
        assert seen.raw == before


def _more(seen: Terminal) -> bool:
    size = len(seen.raw)
    seen.read(0.05)
    return len(seen.raw) > size


def test_no_colour_means_no_colour_in_the_tree_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with live_tree() as (tree, seen):
        with tree:
            tree.notice(Notice.DATABASE_BACK, "")
            tree.looked([], Database(current(row("a", "failed"), tree=["a"])))
        seen.read_until("\x1b[?25h")
        assert "✗ a" in seen.raw
        assert not re.search(r"\x1b\[[\d;]*m", seen.raw)


def test_columns_sets_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    with live_tree() as (tree, seen):
        with tree:
            tree.looked([], Database(current(running_since("a" * 50), tree=["a" * 50])))
        seen.read_until("\x1b[?25h")
        assert max(map(len, seen.screen.lines)) <= 30


def test_a_terminal_that_becomes_narrower_shows_one_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"a-rather-long-name-{number}" for number in range(4)]
    rows = [row(name, "failed", error={"code": "E", "message": "m" * 60}) for name in names]
    with live_tree(80, 20) as (tree, seen):
        monkeypatch.setattr(tree._console, "_width", 80)
        with tree:
            tree.say("above")
            tree.looked([], Database(current(*rows, tree=tuple(names))))
            seen.read_until("name-3")
            while _more(seen):
                pass
            seen.screen.narrow(33)
            monkeypatch.setattr(tree._console, "_width", 33)
        seen.read_until("\x1b[?25h")
        assert seen.screen.lines[0] == "above"
        assert [line[:5] for line in seen.screen.lines[1:]] == ["● run", *["  ✗ a"] * 4]
        assert not any("E: m" * 5 in line for line in seen.screen.lines)


def test_the_cursor_comes_back_after_an_error() -> None:
    with live_tree() as (tree, seen):
        with suppress(RuntimeError), tree:
            tree.looked([], Database(current(running_since("a"), tree=["a"])))
            seen.read_until("in-progress")
            raise RuntimeError
        seen.read_until("\x1b[?25h")


def test_a_terminal_that_is_gone_is_told_once() -> None:
    told: list[str] = []
    with terminal(60, 12) as (_, slave), os.fdopen(slave, "w", encoding="utf-8") as stream:
        tree = LiveTree("r1", "wf", stream, lambda: told.append("broken"))
        os.dup2(os.open("/dev/full", os.O_WRONLY), slave)
        with tree:
            tree.say("nobody")
            tree.looked([], Database(current(running_since("a"), tree=["a"])))
            tree.say("hears")
        assert tree.broken
        with pytest.raises(OSError, match="No space"):
            stream.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), slave)
    assert told == ["broken"]


# ── where there is no terminal ──


@pytest.mark.parametrize(
    ("environment", "colours"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colours_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], colours: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = StringIO()
    console(out).print("word", style="red")
    assert out.getvalue() == ("\x1b[31mword\x1b[0m\n" if colours else "word\n")


@pytest.mark.parametrize(("term", "colours"), [("xterm", True), ("dumb", False)])
def test_a_dumb_terminal_has_no_colours(
    monkeypatch: pytest.MonkeyPatch, term: str, colours: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    with terminal(60, 12) as (_, slave), os.fdopen(slave, "w", encoding="utf-8") as stream:
        assert has_colours(stream) is colours


@pytest.mark.parametrize(
    ("columns", "width"), [("77", 77), ("0", 200), ("-3", 200), ("wide", 200), ("9" * 30, 200)]
)
def test_columns(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert console(StringIO()).width == width


def test_what_an_encoding_lacks_is_escaped() -> None:
    raw = BytesIO()
    out = TextIOWrapper(raw, encoding="ascii", write_through=True)
    console(out).print("é ✓", soft_wrap=True)
    assert raw.getvalue() == b"\\xe9 \\u2713\n"


def test_a_broken_pipe_is_the_callers() -> None:
    class Broken(StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        console(Broken()).print("word")


def test_closed_streams_are_taken_by_nothing() -> None:
    code = (
        "from smithers.cli.terminal import open_standard_streams, show, say\n"
        "import os, subprocess, sys\n"
        "open_standard_streams()\n"
        "show('x'); say('x'); sys.stdin.read()\n"
        "taken = os.open('/', os.O_RDONLY)\n"
        "child = subprocess.run(['sh', '-c', 'echo x; echo x >&2; cat'])\n"
        "sys.exit(40 + (taken > 2) + 2 * (child.returncode == 0))\n"
    )
    words = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code]
    assert subprocess.run(words, check=False, timeout=30).returncode == 43
