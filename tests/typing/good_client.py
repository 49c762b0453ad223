"""A program that uses the client; both type checkers accept it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

from pydantic import BaseModel, JsonValue

from smithers.client import (
    Client,
    EventLine,
    NodeOutput,
    Receipt,
    Run,
    RunState,
    RunStatus,
    RunSummary,
    Why,
)


class Ticket(BaseModel):
    title: str


class Plan(BaseModel):
    files: list[str]


def use(client: Client, words: dict[str, str], tickets: list[Ticket]) -> None:
    run = client.start("fix.py:fix", Ticket(title="x"), idempotency_key="k", max_concurrency=2)
    assert_type(run, Run)
    client.start(Path("fix.py"), words, run_id="r", engine=True)
    client.start("fix.py", {"tickets": tickets, "more": (1, 2.0, None)})
    assert_type(client.run("r"), Run)
    assert_type(client.runs(status=RunState.FAILED, limit=3), list[RunSummary])
    client.runs(status={RunState.PAUSED, RunState.RUNNING}, limit=None)
    assert_type(run.wait(timeout=1.5, until="parked"), RunStatus)
    assert_type(run.why(), Why)
    assert_type(run.output("plan"), JsonValue)
    assert_type(run.output("plan", model=Plan), Plan)
    assert_type(run.output("plan", model=Plan, iteration=2).files, list[str])
    assert_type(run.outputs(), list[NodeOutput])
    assert_type(run.events(since=3), list[EventLine])
    assert_type(run.follow(), Iterator[EventLine])
    assert_type(run.approve(by="ann", note="fine"), Receipt)
    run.deny("ship", iteration=1)
    run.signal("go", words, idempotency_key="s")
    run.answer("mood", Ticket(title="x"))
    assert_type(run.pause(), RunState)
    assert_type(run.cancel(), RunState)
    assert_type(run.resume(pinned=True).created, bool)
