"""What a body can do to its executor, and what is made of it. Real children, no database."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from smithers.process.attempt_files import log_path
from smithers.process.kill import members
from smithers.process.procfs import process
from smithers.worker.attempt import Attempt, Verdict
from smithers.worker.executor import Executor
from smithers.worker.outcome import Cancelled, Dropped, Outcome, Released
from support.attempts import Desk, attempt, descriptor, error, output
from support.waiting import until


@pytest.fixture
def desk(tmp_path: Path) -> Generator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()


class Running:
    """An attempt that runs in a thread."""

    def __init__(self, executor: Executor, body: dict[str, Any]) -> None:
        self.attempt: Attempt = attempt(body)
        self._outcomes: list[Outcome] = []
        self._thread = threading.Thread(
            target=lambda: self._outcomes.append(executor.run(self.attempt))
        )
        self._thread.start()

    def outcome(self) -> Outcome:
        self._thread.join(60)
        return self._outcomes[0]


def started(mark: Path) -> int:
    """The pid of a body that has written its mark."""
    return int(until(lambda: mark.exists() and mark.read_text()))


def dead(pid: int) -> bool:
    proc = process(pid)
    return proc is None or proc.dead


def test_attempts_share_a_warm_executor_and_have_logs_of_their_own(desk: Desk) -> None:
    executor = desk.start()
    first = desk.run(descriptor("say", text="one"), executor)
    second = desk.run(descriptor("say", text="two", times=2), executor, attempt=2)
    assert output(first)["text"] == "one"
    assert output(second)["text"] == "twotwo"
    assert output(first)["whole"] == output(second)["whole"] == executor.child.pid
    assert executor.usable
    logs = [
        log_path(desk.settings.home, attempt(descriptor("say"), attempt=number).task).read_text()
        for number in (1, 2)
    ]
    assert sorted(logs[0].split()) == ["one", "stderr", "to"]
    assert sorted(logs[1].split()) == ["stderr", "to", "two"]


def test_coroutines_partials_and_needs(desk: Desk) -> None:
    executor = desk.start()
    assert output(desk.run(descriptor("say_later", text="x"), executor))["text"] == "x"
    partial = {"args": [], "kwargs": {"text": "bound"}}
    assert output(desk.run(descriptor("say", partial=partial), executor))["text"] == "bound"
    model = descriptor("say")["output"]["model"]
    needs = [
        {"param": name, "node_id": name, "iteration": 0, "model": model, "kind": "compute"}
        for name in ("left", "right")
    ]
    body = descriptor("join", needs=needs, between="-")
    given = {"left": {"text": "a\0", "number": 1.5, "whole": 2}, "right": None}
    assert output(desk.run(body, executor, needs=given))["text"] == "a\uffff0000-nothing"


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (descriptor("nobody"), "TASK_NOT_IMPORTABLE", "has no nobody"),
        (descriptor("no_module:f"), "ENVIRONMENT_MISSING", "no_module"),
        (descriptor("needs_numpy_twice"), "ENVIRONMENT_MISSING", "no_such_distribution"),
        (descriptor("say", nonsense=1), "TASK_RAISED", "nonsense"),
        (descriptor("loose", what="infinity", model="Loose"), "OUTPUT_NOT_SERIALISABLE", "value"),
        (descriptor("loose", what="deep", model="Loose"), "OUTPUT_NOT_SERIALISABLE", "0.0.a"),
        (descriptor("loose", what="object", model="Loose"), "OUTPUT_NOT_SERIALISABLE", "object"),
        (descriptor("say", model="Loose"), "OUTPUT_INVALID", "a Out, not Loose"),
        (
            descriptor("say", kind="agent", agents=[{"kind": "claude"}]),
            "AGENT_UNSUPPORTED",
            "claude",
        ),
    ],
)
def test_each_fault_has_its_code_and_spares_the_executor(
    desk: Desk, body: dict[str, Any], code: str, words: str
) -> None:
    executor = desk.start()
    found = error(desk.run(body, executor))
    assert found["code"] == code
    assert words in found["message"]
    assert found["details"]["node_id"] == "node"
    assert output(desk.run(descriptor("say"), executor))["text"] == "hello"


def test_a_body_that_takes_too_long_is_killed_with_all_it_started(
    desk: Desk, tmp_path: Path
) -> None:
    executor = desk.start()
    body = descriptor("stay_with_family", mark=str(tmp_path / "mark"), timeout=2.0)
    assert error(desk.run(body, executor))["code"] == "TASK_TIMEOUT"
    assert members(executor.child.tree) == []
    assert not executor.usable


def test_a_body_that_falls_silent_is_killed(desk: Desk) -> None:
    executor = desk.start()
    lively = descriptor("beat", times=8, seconds=0.1, heartbeat_timeout=0.7)
    assert output(desk.run(lively, executor))["whole"] == 8
    silent = descriptor("beat", times=2, seconds=0.1, stop=False, heartbeat_timeout=0.7)
    running = attempt(silent)
    assert error(executor.run(running))["code"] == "HEARTBEAT_TIMEOUT"
    assert running.beat == {"beat": 1}


def test_what_a_finished_body_leaves_behind_is_killed(desk: Desk, tmp_path: Path) -> None:
    executor = desk.start()
    ready = tmp_path / "ready"
    ready.touch()
    body = descriptor("stay_with_family", mark=str(tmp_path / "mark"), path=str(ready))
    assert output(desk.run(body, executor))["text"] == "waited"
    assert members(executor.child.tree) == []
    assert not executor.usable


def test_an_executor_that_grew_is_not_used_again(desk: Desk) -> None:
    executor = desk.start()
    output(desk.run(descriptor("grow", megabytes=300), executor))
    assert not executor.usable


def test_an_attempt_leaves_no_folder_and_no_alarm_to_the_next(desk: Desk, tmp_path: Path) -> None:
    executor = desk.start()
    here = output(desk.run(descriptor("move_away"), executor))["text"]
    assert output(desk.run(descriptor("move_away"), executor))["text"] == here
    mark = tmp_path / "mark"
    running = Running(executor, descriptor("wait_for", path=str(tmp_path / "go"), mark=str(mark)))
    started(mark)
    assert executor.child.wait(0.5) is None  # the alarm of the one before would have killed it
    (tmp_path / "go").touch()
    assert output(running.outcome())["text"] == "waited"


def test_a_killed_executor_says_by_what(desk: Desk, tmp_path: Path) -> None:
    executor = desk.start()
    mark = tmp_path / "mark"
    running = Running(executor, descriptor("wait_for", path="/nowhere/x", mark=str(mark)))
    os.kill(started(mark), signal.SIGTERM)
    found = error(running.outcome())
    assert found["code"] == "EXECUTOR_DIED"
    assert found["details"]["signal"] == "SIGTERM"


def test_printing_without_end_fails_only_that_attempt(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limit_mb=1)
    found = error(desk.run(descriptor("say", text="x" * 3_000_000)))
    assert found["code"] == "LOG_OVERFLOW"
    assert len(found["details"]["output_tail"]) <= 8_000
    log = log_path(desk.settings.home, attempt(descriptor("say")).task)
    assert log.stat().st_size <= 1024 * 1024
    desk.close()


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [(Verdict.LOST, Dropped), (Verdict.CANCELLED, Cancelled), (Verdict.RELEASED, Released)],
)
def test_a_verdict_ends_the_body_and_its_family(
    desk: Desk, tmp_path: Path, verdict: Verdict, kind: type
) -> None:
    executor = desk.start()
    mark = tmp_path / "mark"
    running = Running(executor, descriptor("stay_with_family", mark=str(mark)))
    started(mark)
    family = [proc.pid for proc in members(executor.child.tree)]
    assert len(family) == 3
    assert running.attempt.end(verdict)
    assert isinstance(running.outcome(), kind)
    assert all(dead(pid) for pid in family)


def test_a_verdict_before_the_body_begins_is_not_missed(desk: Desk) -> None:
    running = attempt(descriptor("wait_for", path="/nowhere/x"))
    running.end(Verdict.CANCELLED)
    assert isinstance(desk.start().run(running), Cancelled)


def test_a_suspended_body_stands_still_and_its_time_doesnt_count(
    desk: Desk, tmp_path: Path
) -> None:
    executor = desk.start()
    mark = tmp_path / "mark"
    body = descriptor("stay_with_family", mark=str(mark), path=str(tmp_path / "go"), timeout=20.0)
    running = Running(executor, body)
    started(mark)
    running.attempt.suspend()
    until(lambda: all(proc.stopped for proc in members(executor.child.tree)))
    assert running.attempt.suspended is not None
    assert running.attempt.resume()
    assert not running.attempt.resume()
    assert running.attempt.stood_still() > 0
    (tmp_path / "go").touch()
    assert output(running.outcome())["text"] == "waited"


def test_a_fenced_attempt_whose_body_has_returned_retires_its_executor(desk: Desk) -> None:
    executor = desk.start()
    done = attempt(descriptor("say"))
    executor.run(done)
    assert executor.usable
    done.end(Verdict.LOST)
    assert not executor.usable


def test_a_body_sees_no_secret_and_knows_its_home(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMITHERS_DATABASE_URL", "postgresql://secret@host/db")
    monkeypatch.setenv("PGPASSWORD", "secret")
    see: Callable[[str], str] = lambda name: output(  # noqa: E731
        desk.run(descriptor("environment", name=name), executor)
    )["text"]
    executor = desk.start()
    assert see("SMITHERS_DATABASE_URL") == see("PGPASSWORD") == "(not set)"
    assert see("SMITHERS_CHANNEL_FD") == "(not set)"
    assert see("SMITHERS_HOME") == str(desk.settings.home)
    assert see("PATH") == os.environ["PATH"]


AGENT = (
    "import json, os, sys; prompt = sys.stdin.read();"
    "print('thinking', {'not': 'json'});"
    "print(json.dumps({'text': prompt, 'whole': len(os.environ['SMITHERS_OUTPUT_SCHEMA'])}));"
    "print('done')"
)


def agent(code: str) -> dict[str, Any]:
    spec = {"kind": "command", "name": "c", "options": {"argv": [sys.executable, "-c", code]}}
    return descriptor("say", kind="agent", agents=[spec], prompt="do {it}")


def test_a_command_agent_answers_with_its_last_object(desk: Desk) -> None:
    assert output(desk.run(agent(AGENT))) == {"text": "do {it}", "number": 0.0, "whole": 2}
    log = log_path(desk.settings.home, attempt(descriptor("say")).task).read_text()
    assert "thinking" in log


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(3)", "AGENT_FAILED"),
        ("print('no answer')", "AGENT_ANSWER_MISSING"),
        ('print(\'{"whole": "many"}\')', "OUTPUT_INVALID"),
    ],
)
def test_an_agent_without_a_good_answer_fails(desk: Desk, code: str, expected: str) -> None:
    assert error(desk.run(agent(code)))["code"] == expected


def test_an_agent_ends_though_what_it_left_holds_its_pipes(desk: Desk) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '86400']); print('{\"text\": \"x\"}')"
    executor = desk.start()
    assert output(desk.run(agent(code), executor))["text"] == "x"
    assert members(executor.child.tree) == []
