"""`smithers node`: one node from close by."""

from __future__ import annotations

import json
import shlex
from datetime import datetime
from typing import Any

import click

from smithers.cli.completing import complete_runs
from smithers.cli.invocation import Invocation, json_option, pass_invocation, print_json
from smithers.cli.terminal import colour, safe, show, show_table, span, when
from smithers.operations.inspecting import NodeReport, inspect_node
from smithers.operations.resolving import resolve
from smithers.operations.session import session


@click.command(short_help="Show one node: its attempts, what it waits for, its output.")
@click.argument("run", shell_complete=complete_runs)
@click.argument("node")
@click.option("--iteration", type=click.IntRange(0), help="Of a loop; the last pass if not given.")
@json_option
@pass_invocation
def node(
    invocation: Invocation, *, run: str, node: str, iteration: int | None, as_json: bool
) -> None:
    """Show NODE of RUN: state, attempts one by one, upstream nodes, what was to be done, output."""
    settings = invocation.settings()
    with session(settings) as opened:
        run_id = resolve(opened.connection, run)
        seen = inspect_node(opened.connection, settings.home, run_id, node, iteration=iteration)
    if as_json:
        print_json(seen.to_json())
    else:
        _show(run_id, seen)


def _show(run_id: str, seen: NodeReport) -> None:
    node = seen.node
    passed = f" (pass {node['iteration']} of {seen.passes})" if seen.passes > 1 else ""
    show(f"node      {safe(node['node_id'])}{passed}")
    show(f"kind      {node['kind']}")
    show(f"state     {node['state']}", style=colour(str(node["state"])))
    if node["due_at"]:
        show(f"due       {when(node['due_at'])}")
    if node["error"]:
        show(f"error     {_error(node['error'])}", style="red")
    for name, value in _what(seen.descriptor):
        show(f"{name:<9} {safe(value)}")
    if seen.upstream:
        after = ", ".join(f"{safe(u['node_id'])} ({u['state']})" for u in seen.upstream)
        show(f"after     {after}")
    if seen.attempts:
        show()
        show_table(
            ["ATTEMPT", "STATE", "BEGAN", "TOOK", "WHERE", "ERROR"],
            [
                [a["attempt"], a["state"], when(a["started_at"] or a["claimed_at"]), _took(a),
                 _where(a), _error(a["error"] or {})]
                for a in seen.attempts
            ],
        )  # fmt: skip
        name = shlex.quote(str(node["node_id"]))
        show(f"printed: smithers logs {shlex.quote(run_id)} {safe(name)}")
    if seen.output is not None:
        show()
        show(f"output    {safe(json.dumps(seen.output, ensure_ascii=False))}")
    elif node["state"] not in {"finished", "skipped"}:
        show(f"why: smithers why {shlex.quote(run_id)}")


def _what(descriptor: dict[str, Any] | None) -> list[tuple[str, str]]:
    if descriptor is None:
        return []
    found: list[tuple[str, str]] = []
    if run := descriptor.get("run"):
        found.append(("runs", f"{run}({_arguments(descriptor)})"))
    if agents := descriptor.get("agents"):
        found.append(("agents", ", ".join(str(each.get("name")) for each in agents)))
        found.append(("prompt", str(descriptor.get("prompt"))))
    limits = {"timeout": "timeout", "heartbeat_timeout": "heartbeat"}
    return found + [
        (word, f"{descriptor[name]} s")
        for name, word in limits.items()
        if descriptor.get(name) is not None
    ]


def _arguments(descriptor: dict[str, Any]) -> str:
    args = {**(descriptor.get("args") or {})}
    given = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in args.items()]
    needs = [f"{each['param']}=<{each['node_id']}>" for each in descriptor.get("needs") or []]
    return ", ".join([*given, *needs])


def _took(attempt: dict[str, Any]) -> str:
    began, ended = attempt["started_at"], attempt["finished_at"]
    if not began or not ended:
        return ""
    return span(datetime.fromisoformat(ended) - datetime.fromisoformat(began))


def _where(attempt: dict[str, Any]) -> str:
    if attempt["host"] is None:
        return str(attempt["origin"])
    return f"{attempt['worker'] or 'worker'} {attempt['pid']} on {attempt['host']}"


def _error(error: dict[str, Any]) -> str:
    return safe(f"{error['code']}: {error.get('message')}") if error.get("code") else ""
