"""A run's progress as lines of text that fit a terminal: one for the run, then its tree. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from smithers.cli.progress_fold import Forest, Mark, Shown, Tally, fold
from smithers.cli.progress_model import Place, Progress, Row
from smithers.cli.terminal import colour, safe, span
from smithers.workflow.states import ENDED_RUNS, AttemptState, NodeKind, NodeState, RunStatus


class Segment(NamedTuple):
    """Some text of one style of rich's."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Segment, ...]

_INDENT: Final = 2
_SHORTEST_NAME: Final = 12
_GLYPHS: Final = {
    Mark.FINISHED: ("✓", "+"),
    Mark.RUNNING: ("●", "*"),
    Mark.PENDING: ("○", "."),
    Mark.FAILED: ("✗", "x"),
    Mark.WAITING: ("⏸", "="),
    Mark.LEFT_OUT: ("\N{EN DASH}", "-"),
}
_COLOURS: Final = {
    Mark.FINISHED: "green",
    Mark.RUNNING: "cyan",
    Mark.PENDING: "dim",
    Mark.FAILED: "red",
    Mark.WAITING: "yellow",
    Mark.LEFT_OUT: "dim",
}
_OF_RUNS: Final = {
    RunStatus.RUNNING: Mark.RUNNING,
    RunStatus.FINISHED: Mark.FINISHED,
    RunStatus.CONTINUED: Mark.FINISHED,
    RunStatus.FAILED: Mark.FAILED,
    RunStatus.CANCELLED: Mark.LEFT_OUT,
}
_TIMED: Final = frozenset({NodeKind.AGENT, NodeKind.COMPUTE})
_DUE: Final[dict[NodeState | AttemptState, str]] = {
    NodeState.PENDING: "next try in",
    NodeState.WAITING_APPROVAL: "for at most",
    NodeState.WAITING_EVENT: "for at most",
}


@dataclass(frozen=True, slots=True)
class Paper:
    """What is drawn on: columns, lines, and what its encoding can show."""

    width: int
    height: int
    encoding: str = "utf-8"

    @property
    def is_plain(self) -> bool:
        """Whether the encoding lacks the signs, so that ASCII ones stand for them."""
        signs = "…" + "".join(sign for sign, _ in _GLYPHS.values())
        return not _encodes(signs, self.encoding)

    def glyph(self, mark: Mark) -> str:
        """The sign of a mark."""
        return _GLYPHS[mark][self.is_plain]

    @property
    def dots(self) -> str:
        """What stands for something left out."""
        return "..." if self.is_plain else "…"

    def text(self, value: object) -> str:
        """A value as this paper can show it."""
        shown = safe(value)
        if _encodes(shown, self.encoding):
            return shown
        return shown.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def cut(self, text: str, width: int) -> str:
        """Make a text at most `width` columns wide; wide characters count as two."""
        from rich.cells import cell_len, set_cell_size

        if cell_len(text) <= width:
            return text
        dots = self.dots[: max(0, width)]
        return set_cell_size(text, max(0, width - len(dots))).rstrip() + dots


def draw(progress: Progress, paper: Paper, now: datetime) -> list[Line]:
    """Draw a run at a time of our clock: at most `height` lines, none wider than `width`.

    The last one leaves room for the ^C that a terminal may put behind it.
    """
    clock = now + progress.lead
    lines = [_header(progress, paper, clock)]
    if progress.root is not None:
        # The outermost container is the run itself.
        root = progress.root
        top = root if root.key is None else Place("run", children=(root,))
        forest = Forest.grown(progress.run_id, top, progress.rows)
        shown = fold(forest, top, paper.height - 1)
        lines += [_line(forest, each, paper, clock) for each in shown]
    lines = lines[: max(1, paper.height)]
    fitted = [_fit(line, paper) for line in lines[:-1]]
    return [*fitted, _fit(lines[-1], replace(paper, width=max(1, paper.width - 2)))]


def _header(progress: Progress, paper: Paper, clock: datetime) -> Line:
    status = progress.status
    mark = _OF_RUNS.get(status, Mark.WAITING)
    parts = [f"run {paper.text(progress.run_id)}", paper.text(progress.workflow)]
    facts: list[str] = []
    if progress.created_at is not None:
        end = progress.ended_at if status in ENDED_RUNS and progress.ended_at else clock
        done, total = progress.done()
        facts = [_lasting(end - progress.created_at), f"{done}/{total} done"]
    style = _COLOURS[mark]
    return (
        Segment(f"{paper.glyph(mark)} ", style),
        Segment("  ".join(parts), "bold"),
        Segment(f"  {status}", style),
        Segment("".join(f"  {fact}" for fact in facts)),
    )


def _line(forest: Forest, shown: Shown, paper: Paper, clock: datetime) -> Line:
    indent = " " * (_INDENT * (shown.depth + 1))
    if shown.command is not None:
        return (Segment(f"{indent}{paper.text(shown.command)}", "bold"),)
    if shown.place is None:
        words = f"{shown.more} more" if shown.more else _counted(shown.tally)
        return (Segment(f"{indent}{paper.dots} {words}", "dim"),)
    place, mark = shown.place, forest.marks[shown.place]
    row = forest.rows.get(place.key) if place.key else None
    inner = bool(place.children) or place.key is None
    facts = _of_container(shown, place, mark, row) if inner else _of_node(row, clock)
    head, tail = f"{indent}{paper.glyph(mark)} ", "".join(f"  {fact}" for fact in facts)
    name = paper.text(place.key[0] if place.key else place.kind)
    room = max(_SHORTEST_NAME, paper.width - len(head) - len(tail))
    return (
        Segment(head, _COLOURS[mark]),
        Segment(paper.cut(name, room), "dim" if mark is Mark.LEFT_OUT else ""),
        Segment(tail, "dim" if row is None or inner else colour(row.state)),
        Segment(paper.text(_error(row)), "red"),
    )


def _of_container(shown: Shown, place: Place, mark: Mark, row: Row | None) -> list[str]:
    facts: list[str] = []
    if place.key is not None:
        facts.append(f"pass {place.key[1] + 1}{f' of {place.limit}' if place.limit else ''}")
        if row and (row.detail or {}).get("exhausted"):
            facts.append("its passes are used up")
    elif place.limit is not None:
        facts.append(f"{place.limit} at a time")
    over = shown.tally[Mark.FINISHED] + shown.tally[Mark.LEFT_OUT] + shown.tally[Mark.FAILED]
    facts.append(f"{over}/{shown.tally.total()}")
    if not shown.whole and mark not in {Mark.FINISHED, Mark.PENDING}:
        facts.append(_counted(shown.tally))
    return facts


def _of_node(row: Row | None, clock: datetime) -> list[str]:
    """State, time, attempt, in that order; what is usual isn't said."""
    if row is None:
        return [NodeState.PENDING.value]
    facts = [row.state.value]
    if row.state is AttemptState.IN_PROGRESS and row.started_at:
        facts.append(_lasting(clock - row.started_at))
    elif row.state is NodeState.FINISHED and row.started_at and row.ended_at:
        facts += [span(row.ended_at - row.started_at)] if row.kind in _TIMED else []
    elif row.due_at is not None and row.due_at > clock:
        words = _DUE.get(row.state, "for")
        facts.append(f"{words} {_lasting(row.due_at - clock)}")
    if row.attempt > 1:
        facts.append(f"attempt {row.attempt}")
    return facts


def _error(row: Row | None) -> str:
    """Why a node failed, or last failed; of a finished one nobody asks."""
    if row is None or not row.error or row.state is NodeState.FINISHED:
        return ""
    message = " ".join(str(row.error.get("message") or "").split())
    return "  " + ": ".join(part for part in (str(row.error.get("code") or ""), message) if part)


def _counted(tally: Tally) -> str:
    order = (Mark.FINISHED, Mark.FAILED, Mark.RUNNING, Mark.WAITING, Mark.PENDING, Mark.LEFT_OUT)
    return ", ".join(f"{tally[mark]} {mark}" for mark in order if tally[mark]) or "nothing"


def _lasting(delta: timedelta) -> str:
    """A time that still grows: in whole seconds, so that it changes once in a second."""
    seconds = max(0, int(delta.total_seconds()))
    return f"{seconds} s" if seconds < 60 else span(timedelta(seconds=seconds))


def _fit(line: Line, paper: Paper) -> Line:
    from rich.cells import cell_len

    left, fitted = paper.width, list[Segment]()
    for segment in line:
        if left <= 0 or not segment.text:
            continue
        text = paper.cut(segment.text, left)
        fitted.append(Segment(text, segment.style))
        left -= cell_len(text)
    return tuple(fitted)


def _encodes(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
