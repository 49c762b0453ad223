"""The workflow in a test: no database, no processes; a run takes milliseconds."""

from __future__ import annotations

from pathlib import Path

from smithers.testing import run_workflow, start_workflow

from triage import Draft, Inbox, Sent, triage


def inbox(folder: Path) -> Inbox:
    (folder / "a.txt").write_text("It burns!")
    (folder / "b.txt").write_text("A question")
    return Inbox(folder=str(folder))


def test_every_ticket_is_answered(tmp_path: Path) -> None:
    run = run_workflow(triage, inbox(tmp_path), approve=True)
    assert run.status == "finished", run.explain()
    assert run.output("draft:a.txt", Draft).urgent
    assert run.output("send", Sent).count == 2


def test_nothing_is_sent_before_somebody_says_yes(tmp_path: Path) -> None:
    run = start_workflow(triage, inbox(tmp_path))
    assert list(run.waiting) == ["send?"]
    assert not run.calls_of("send")
    run.deny("send?")
    assert run.status == "failed"
