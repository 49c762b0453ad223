"""Results for people: one run, why it is where it is, how it ended."""

from __future__ import annotations

from datetime import datetime

from smithers.cli.terminal import ago, colour, safe, safe_lines, show, show_table, span, when
from smithers.operations.blocked import Blocked
from smithers.operations.results import Reason, RunStatus, RunSummary, Why
from smithers.operations.verdict import Unhealthy


def show_runs(runs: list[RunSummary]) -> None:
    """A listing."""
    if not runs:
        show("no runs")
        return
    show_table(
        ["RUN", "WORKFLOW", "STATUS", "VERDICT", "DONE", "AGE", "NODES"],
        [
            [
                each.run_id,
                each.run["workflow"],
                each.run["status"],
                each.verdict.value,
                f"{each.nodes.get('finished', 0)}/{sum(each.nodes.values())}",
                ago(each.run["created_at"]).removesuffix(" ago"),
                _counts({s: n for s, n in each.nodes.items() if s not in {"finished", "pending"}}),
            ]
            for each in runs
        ],
    )


def show_status(seen: RunStatus) -> None:
    """One run from close by."""
    run = seen.run
    show(f"run       {safe(seen.run_id)}")
    show(f"workflow  {safe(run['workflow'])} ({safe(run['path'])})")
    show(f"status    {seen.status}", style=colour(seen.status))
    show(f"verdict   {seen.verdict.value}", style=colour(seen.verdict.value))
    show(f"started   {when(run['created_at'])}")
    if run["ended_at"]:
        show(f"ended     {when(run['ended_at'])} (after {_took(seen)})")
    if run["error"]:
        show(f"error     {_error(run['error'])}", style="red")
    if seen.nodes:
        show()
        show_table(
            ["NODE", "PASS", "KIND", "STATE", "ATTEMPTS", "DUE"],
            [
                [
                    node["node_id"],
                    node["iteration"],
                    node["kind"],
                    node["state"],
                    node["current_attempt"] or node["last_attempt"] or "",
                    when(node["due_at"]),
                ]
                for node in seen.nodes
            ],
        )
    _show_waits(seen)


def show_why(answer: Why) -> None:
    """Each reason and the next command."""
    show(f"run {safe(answer.run_id)} is {answer.status} ({answer.verdict.value})")
    for reason in answer.reasons:
        _show_reason(reason)
    if not answer.reasons:
        show("  nothing holds it up")


def show_end(seen: RunStatus) -> None:
    """How a run that was followed ended, or what it waits for."""
    counts = _counts({state: _of(seen, state) for state in {n["state"] for n in seen.nodes}})
    run = safe(seen.run_id)
    if seen.run["ended_at"]:
        words = f"run {run}: {seen.status}"
        degraded = " (degraded: smithers why says how)" if seen.verdict == "degraded" else ""
        show(f"{words}{degraded} in {_took(seen)}; {counts}", style=colour(seen.verdict.value))
        if seen.run["error"]:
            show(f"  {_error(seen.run['error'])}", style="red")
            show(f"  smithers why {run}")
    else:
        show(f"run {run}: {seen.status}; {counts}", style=colour(seen.status))
        _show_waits(seen)


def _show_waits(seen: RunStatus) -> None:
    for wait in seen.blocked:
        _show_wait(wait)
    for wrong in seen.unhealthy:
        _show_unhealthy(wrong)


def _show_wait(wait: Blocked) -> None:
    place = f"{_node(wait.node_id, wait.iteration)}: " if wait.node_id else ""
    due = f" (due {when(wait.due_at)})" if wait.due_at else ""
    show(f"  waits: {wait.reason}: {place}{safe(wait.message)}{due}", style="yellow")
    if wait.command:
        show(f"    {safe(wait.command)}")


def _show_unhealthy(wrong: Unhealthy) -> None:
    since = f" (since {when(wrong.since)})" if wrong.since else ""
    show(f"  unhealthy: {wrong.reason}: {safe(wrong.message)}{since}", style="red")
    if wrong.command:
        show(f"    {safe(wrong.command)}")


def _show_reason(reason: Reason) -> None:
    place = f"{_node(reason.node_id, reason.iteration)}: " if reason.node_id else ""
    code = f"{safe(reason.code)}: " if reason.code else ""
    due = f" (due {when(reason.due_at)})" if reason.due_at else ""
    tries = f" (attempt {reason.attempt})" if reason.attempt else ""
    style = "red" if reason.kind == "failed" else "yellow"
    show(f"  {reason.kind}: {place}{code}{safe(reason.message)}{tries}{due}", style=style)
    if reason.tail:
        for line in safe_lines(reason.tail).splitlines():
            show(f"    | {line}", style="dim")
    if reason.command:
        show(f"    {safe(reason.command)}")


def _node(node_id: object, iteration: object) -> str:
    return f"{safe(node_id)} #{iteration}" if iteration else safe(node_id)


def _error(error: dict[str, object]) -> str:
    return safe(f"{error.get('code')}: {error.get('message')}")


def _counts(states: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def _of(seen: RunStatus, state: str) -> int:
    return sum(node["state"] == state for node in seen.nodes)


def _took(seen: RunStatus) -> str:
    began, ended = seen.run["created_at"], seen.run["ended_at"]
    return span(datetime.fromisoformat(ended) - datetime.fromisoformat(began))
