"""A run is looked at by every command that looks, after real processes have worked on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from smithers.sql.calls import Connection
from support.fleet import Fleet, fleet
from support.postgres import TestServer, database_on
from support.runs import connect
from support.screen import running
from support.waiting import until

WORKFLOW = '''
import sys
from pathlib import Path

from pydantic import BaseModel
from smithers.workflow import Approval, Ctx, Loop, Node, RetryPolicy, Sequence, Task, workflow


class Where(BaseModel):
    folder: str


class Said(BaseModel):
    words: int


def stumble(folder: str) -> Said:
    """Fails the first time."""
    mark = Path(folder) / "stumbled"
    print("one\\n\\x1b[31mred\\x1b[0m", "to stderr", file=sys.stderr)
    if not mark.exists():
        mark.touch()
        raise RuntimeError("not yet")
    return Said(words=2)


def lap(folder: str) -> Said:
    print("a lap without a line end", end="")
    return Said(words=1)


def never(folder: str) -> Said:
    raise ValueError("never works")


@workflow(input=Where)
def talk(ctx: Ctx[Where]) -> Node:
    where = {"folder": ctx.input.folder}
    laps = Task("lap", Said, run=lap, args=where)
    return Sequence(
        Task("stumble", Said, run=stumble, args=where, retries=1,
             retry_policy=RetryPolicy(initial=0.01)),
        Loop("laps", laps, until=ctx.iteration_count(laps) >= 2),
        Task("never", Said, run=never, args=where, retries=0, continue_on_fail=True),
        Approval("gate"),
    )
'''

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def looked(
    server: TestServer, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[Fleet, Connection]]:
    """A fleet's folder with the runs abc, which is degraded, and abcd, which waits."""
    folder = tmp_path_factory.mktemp("look")
    (folder / "talk.py").write_text(WORKFLOW)
    with (
        database_on(server, template) as name,
        fleet(server.url(name), folder, lease=3.0) as whole,
        connect(server.url(name)) as connection,
    ):
        for run_id in ("abc", "abcd"):
            (folder / "stumbled").unlink(missing_ok=True)
            shape = json.dumps({"folder": str(folder)})
            done = whole.cli("up", "talk.py", "--run-id", run_id, "--input", shape)
            assert done.returncode == 3, done.stdout + done.stderr
        assert whole.cli("approve", "abc", "--no-resume").returncode == 0
        done = whole.cli("up", "talk.py", "--run-id", "abc", "--resume", "--strict")
        assert done.returncode == 1, "it is degraded"
        yield whole, connection


def document(whole: Fleet, *words: str) -> Any:
    done = whole.cli(*words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_node_from_close_by(looked: tuple[Fleet, Connection]) -> None:
    whole, _ = looked
    seen = document(whole, "node", "abc", "stumble")
    assert (seen["state"], seen["passes"], seen["output"]) == ("finished", 1, {"words": 2})
    first, second = seen["attempts"]
    assert (first["state"], second["state"]) == ("failed", "finished")
    assert first["error"]["code"] == "TASK_RAISED"
    assert first["host"] == second["host"] == os.uname().nodename
    assert Path(first["log"]).read_text().startswith("one\n")
    assert seen["descriptor"]["run"] == "talk:stumble"
    last = document(whole, "node", "abc", "lap")
    assert (last["iteration"], last["passes"]) == (1, 2)
    assert [each["node_id"] for each in last["upstream"]] == ["stumble"]
    assert document(whole, "node", "abc", "lap", "--iteration", "0")["iteration"] == 0
    shown = whole.cli("node", "abc", "never").stdout
    assert "ValueError: never works" in shown
    assert "talk:never(folder=" in shown
    for words in (["nope"], ["lap", "--iteration", "7"]):
        refused = whole.cli("node", "abc", *words)
        assert refused.returncode == 4
        assert refused.stderr.startswith("error[NODE_UNKNOWN]: run abc has no node")


def test_what_attempts_printed(looked: tuple[Fleet, Connection]) -> None:
    whole, connection = looked
    shown = whole.cli("logs", "abc").stdout
    assert "\x1b" not in shown, "nothing that was printed moves this terminal"
    lines = shown.splitlines()
    assert lines.count("stumble | one") == 2, "both attempts"
    assert "lap #1 | a lap without a line end" in lines
    assert whole.cli("logs", "abc", "stumble", "--attempt", "2").stdout.count("one") == 1
    found = document(whole, "logs", "abc", "lap", "--iteration", "0", "--tail", "1")
    assert [each["lines"] for each in found] == [["a lap without a line end"]]
    followed = whole.cli("logs", "abc", "-f", "--json").stdout
    told = [json.loads(line) for line in followed.splitlines()]
    assert {(each["node_id"], each["attempt"]) for each in told} >= {("stumble", 1), ("lap", 1)}
    refused = whole.cli("logs", "abc", "nope")
    assert refused.stderr.startswith("error[NODE_UNKNOWN]")
    connection.execute("update smithers.processes set host = 'elsewhere'")
    (gone,) = document(whole, "logs", "abc", "never")
    assert (gone["host"], gone["lines"]) == ("elsewhere", None)
    assert "ran on elsewhere, its log is there" in whole.cli("logs", "abc", "never").stderr
    connection.execute("update smithers.processes set host = %s", [os.uname().nodename])
    assert document(whole, "logs", "abc", "never")[0]["lines"] == [], "it printed nothing"


def test_logs_are_followed_until_the_run_ends(looked: tuple[Fleet, Connection]) -> None:
    whole, _ = looked
    shape = json.dumps({"folder": str(whole.folder)})
    assert whole.cli("up", "talk.py", "--run-id", "z1", "--input", shape).returncode == 3
    with subprocess.Popen(
        [sys.executable, "-m", "smithers.cli.main", "logs", "z1", "-f"],
        env=whole.environment(),
        cwd=whole.folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "stumble | one\n"
        assert following.poll() is None
        assert whole.cli("deny", "z1", "--no-resume").returncode == 0
        assert whole.cli("up", "talk.py", "--run-id", "z1", "--resume").returncode == 1
        assert following.wait(10) == 0


def test_runs_are_listed_by_state_and_number(looked: tuple[Fleet, Connection]) -> None:
    whole, _ = looked

    def listed(*words: str) -> list[str]:
        return [run["run_id"] for run in document(whole, "ps", *words)]

    assert listed() == ["abcd"]
    assert set(listed("--all")) == {"z1", "abcd", "abc"}
    assert listed("--all", "--limit", "1") == ["z1"], "the newest"
    assert listed("--status", "finished") == ["abc"]
    assert listed("--status", "finished,waiting") == ["abcd", "abc"]
    assert listed("--status", "paused") == []
    for words in (["--status", "finnished"], ["--watch"], ["--limit", "0"]):
        refused = whole.cli("ps", *words)
        assert refused.returncode == 4
        assert refused.stderr.startswith("error[USAGE]: ")
    assert "did you mean finished?" in whole.cli("ps", "--status", "finnished").stderr
    row = next(line for line in whole.cli("ps", "--all").stdout.splitlines() if "abc " in line)
    assert row.split()[1:5] == ["talk", "finished", "degraded", "6/7"]


def test_a_listing_is_watched_at_a_terminal(looked: tuple[Fleet, Connection]) -> None:
    whole, _ = looked
    words = [sys.executable, "-m", "smithers.cli.main", "ps", "--watch"]
    with running(
        words, environment=whole.environment(), folder=whole.folder, width=100, height=20
    ) as opened:
        opened.read_until("abcd")
        until(lambda: opened.read(0.1) and opened.raw.count("abcd") >= 2, seconds=20)
        opened.type("\x03")
        assert opened.finish() == 130


def test_a_run_is_known_by_the_beginning_of_its_id(looked: tuple[Fleet, Connection]) -> None:
    whole, _ = looked
    assert document(whole, "status", "abc")["run_id"] == "abc", "though abcd begins so, too"
    assert document(whole, "status", "abcd")["run_id"] == "abcd"
    ambiguous = whole.cli("status", "ab")
    assert ambiguous.returncode == 4
    assert ambiguous.stderr.startswith("error[RUN_AMBIGUOUS]: 'ab' could be abc, abcd\n")
    for never in ("b", "%", "_bc", "abcde"):
        assert whole.cli("status", never).stderr.startswith("error[RUN_UNKNOWN]"), never
    shape = json.dumps({"folder": str(whole.folder)})
    assert whole.cli("up", "talk.py", "--run-id", "xyz-1", "--input", shape).returncode == 3
    for words in (
        ["why"], ["node", "gate"], ["logs"], ["output"], ["events"], ["verify"],
        ["pause"], ["resume", "--no-resume"], ["deny", "--no-resume"], ["cancel"],
    ):  # fmt: skip
        command, *rest = words
        done = whole.cli(command, "xy", *rest)
        assert done.returncode == 0, (words, done.stderr)


def test_strict_says_no_to_what_is_degraded(looked: tuple[Fleet, Connection]) -> None:
    whole, _ = looked
    assert whole.cli("status", "abc").returncode == 0
    assert whole.cli("status", "abc", "--strict").returncode == 1
    assert whole.cli("status", "abcd", "--strict").returncode == 0


def test_a_shell_completes_commands_and_runs(looked: tuple[Fleet, Connection]) -> None:
    whole, _ = looked

    def offered(words: str, **environ: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "smithers.cli.main"],
            env={
                **whole.environment(),
                "_SMITHERS_COMPLETE": "bash_complete",
                "COMP_WORDS": words,
                "COMP_CWORD": str(len(words.split(" ")) - 1),
                **environ,
            },
            cwd=whole.folder,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.stderr == ""
        return [line.partition(",")[2] for line in done.stdout.splitlines() if line]

    assert offered("smithers sta") == ["status"]
    assert set(offered("smithers why ab")) == {"abc", "abcd"}
    nobody = "postgresql://nobody@127.0.0.1:1/none"
    assert offered("smithers why ab", SMITHERS_DATABASE_URL=nobody) == []
    for shell in ("bash", "zsh", "fish"):
        assert "_SMITHERS_COMPLETE" in whole.cli("completions", shell).stdout
