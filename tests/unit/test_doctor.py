"""What the doctor says of planted facts."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from smithers.operations.doctor.database import (
    Embedded,
    Server,
    judge_clock,
    judge_connections,
    judge_durability,
    judge_embedded,
    judge_schema,
    judge_server,
)
from smithers.operations.doctor.finding import Finding, State, failed, isolated
from smithers.operations.doctor.fleet import judge_processes, judge_runs
from smithers.operations.doctor.host import (
    Home,
    Space,
    filesystem_of,
    judge_command,
    judge_disk,
    judge_home,
    judge_limits,
    judge_platform,
    judge_python,
)
from smithers.operations.doctor.looking_programs import AGENTS, ask
from smithers.operations.doctor.programs import (
    Ending,
    Said,
    judge_agent,
    judge_git,
    version_in,
)
from smithers.operations.results import RunSummary
from smithers.operations.verdict import Unhealthy, Verdict
from smithers.workflow.errors import SmithersError

OK, WARNING, PROBLEM = State.OK, State.WARNING, State.PROBLEM
HOME = Home(Path("/p/.smithers"), True, True, True, "ext4", True)
SERVER = Server(
    version=160_004,
    max_connections=100,
    connections=7,
    settings={"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"},
    read_only=False,
    in_recovery=False,
    round_trip=0.001,
    offset=0.0,
)
EMBEDDED = Embedded(
    data=Path("/p/.smithers/pg"),
    log=Path("/p/.smithers/pg.log"),
    url="postgresql:///x",
    running=True,
    pid=12,
    silent_pid=None,
    major=18,
    in_the_way=False,
    bindir=Path("/b"),
    lacking=None,
)
BOTH = ("user.name", "user.email")


def said(text: str, code: int = 0) -> Said:
    return Said(Ending.EXITED, text, code)


def server(**changes: Any) -> Server:
    return dataclasses.replace(SERVER, **changes)


def embedded(**changes: Any) -> Finding:
    return judge_embedded(dataclasses.replace(EMBEDDED, **changes))


def is_mendable(finding: Finding, state: State, *words: str) -> None:
    """It is in that state, says these words, and has a fix unless it is ok."""
    told = f"{finding.message} {finding.fix}"
    assert finding.state is state, finding
    assert all(word in told for word in words), finding
    assert (finding.fix is None) == (state is OK), finding


@pytest.mark.parametrize(
    ("version", "state"), [((3, 10, 14), PROBLEM), ((3, 11, 0), OK), ((4, 0, 0), OK)]
)
def test_python(version: tuple[int, int, int], state: State) -> None:
    is_mendable(judge_python(version, "/bin/python"), state)


@pytest.mark.parametrize(
    ("system", "state"), [("Linux", OK), ("Darwin", WARNING), ("Windows", PROBLEM)]
)
def test_platform(system: str, state: State) -> None:
    is_mendable(judge_platform(system, "6", "arm64"), state, system)


def test_the_command_on_path() -> None:
    ours, other = Path("/my venv/bin"), Path("/usr/bin/smithers")
    is_mendable(judge_command("1.2", ours / "smithers", ours, same=True), OK, "1.2")
    is_mendable(judge_command("1.2", other, ours, same=False), WARNING, str(other), "'/my venv")
    is_mendable(judge_command("1.2", None, ours, same=False), WARNING, "no smithers is on PATH")


@pytest.mark.parametrize(
    ("changes", "state", "word"),
    [
        ({}, OK, "/p/.smithers"),
        ({"exists": False}, OK, "made when needed"),
        ({"is_folder": False}, PROBLEM, "is no folder"),
        ({"writable": False}, PROBLEM, "can't be written"),
        ({"exists": False, "writable": False}, PROBLEM, "can't be made"),
        ({"filesystem": "nfs4"}, WARNING, "nfs4"),
        ({"filesystem": "fuse.sshfs"}, WARNING, "SMITHERS_DATABASE_URL"),
        ({"filesystem": "nfs4", "holds_database": False}, OK, ""),
    ],
)
def test_home(changes: dict[str, Any], state: State, word: str) -> None:
    is_mendable(judge_home(dataclasses.replace(HOME, **changes)), state, word)


def test_the_file_system_of_a_path_is_that_of_the_innermost_mount() -> None:
    mounts = (
        "/dev/vda / ext4 rw 0 0\n"
        "srv:/home /home nfs4 rw 0 0\n"
        "me@host: /home/a\\040b fuse.sshfs rw 0 0\n"
        "first /twice xfs rw 0 0\nsecond /twice cifs rw 0 0\nnonsense\n"
    )
    cases = {"/etc": "ext4", "/home/x/y": "nfs4", "/home/a b/c": "fuse.sshfs", "/homeless": "ext4"}
    cases["/twice/x"] = "cifs"
    assert {path: filesystem_of(Path(path), mounts) for path in cases} == cases
    assert filesystem_of(Path("/x"), "") is None


@pytest.mark.parametrize(
    ("free", "state"), [(15, OK), (14, WARNING), (5, WARNING), (4, PROBLEM), (0, PROBLEM)]
)
def test_disk_by_the_fullest(free: int, state: State) -> None:
    spaces = [Space("home", Path("/h"), 90, 100), Space("data", Path("/d"), free, 100)]
    is_mendable(judge_disk(spaces), state, f"{free}%", "data in /d")


@pytest.mark.parametrize(
    ("files", "state"), [(None, OK), (1024, OK), (1023, WARNING), (127, PROBLEM)]
)
def test_open_files(files: int | None, state: State) -> None:
    is_mendable(judge_limits(files, 50, 103), state)


def test_a_socket_with_a_long_path_is_elsewhere() -> None:
    assert "in /tmp" in judge_limits(1024, 104, 103).message
    assert "in /tmp" not in judge_limits(1024, 103, 103).message


@pytest.mark.parametrize(
    ("told", "identity", "state", "word"),
    [
        (said("git version 2.39.5\n"), BOTH, OK, "2.39.5"),
        (said("git version 2.30.0.windows.1"), BOTH, OK, "2.30"),
        (said("git version 2.29.9"), BOTH, WARNING, "old"),
        (said("git version 1.99"), BOTH, WARNING, "old"),
        (said("git version 2.39.5"), ("user.name",), WARNING, "user.email"),
        (said("git version 2.39.5"), (), WARNING, "user.name and user.email"),
        (said("hello"), BOTH, WARNING, "no version"),
        (said("git version 2.39.5", 3), BOTH, WARNING, "exit code 3"),
        (Said(Ending.HUNG), BOTH, WARNING, "was killed"),
        (Said(Ending.MISSING), (), WARNING, "no git on PATH"),
    ],
)
def test_git(told: Said, identity: tuple[str, ...], state: State, word: str) -> None:
    is_mendable(judge_git(told, identity=identity), state, word)


@pytest.mark.parametrize(
    ("told", "credentials", "state", "word"),
    [
        (said("2.1.4 (Claude Code)"), "ANTHROPIC_API_KEY", OK, "2.1.4"),
        (said("2.1.4 (Claude Code)"), None, WARNING, "/login"),
        (said("\x1b[2J\x00\ufffd"), "x", WARNING, "no version"),
        (said(""), "x", WARNING, "no version"),
        (Said(Ending.HUNG), "x", WARNING, "was killed"),
        (Said(Ending.NOT_STARTED, "Exec format error"), "x", WARNING, "Exec format error"),
    ],
)
def test_agents(told: Said, credentials: str | None, state: State, word: str) -> None:
    is_mendable(judge_agent(AGENTS[0], "/bin/claude", told, credentials), state, word)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("codex-cli 0.46.0", "0.46.0"),
        ("v1.2", "1.2"),
        ("1.0.0-beta.3 x", "1.0.0-beta.3"),
        ("on 12 May", None),
        ("٣.٤", None),
    ],
)
def test_versions(text: str, version: str | None) -> None:
    assert version_in(text) == version


@pytest.mark.parametrize(
    ("offset", "state", "word"),
    [
        (0.0, OK, ""),
        (-2.0, OK, ""),
        (2.1, WARNING, "2.1 s behind"),
        (-60.0, WARNING, "60.0 s ahead of"),
        (61.0, PROBLEM, "61.0 s behind"),
        (-3 * 3600.0, PROBLEM, "3.0 h ahead of"),
    ],
)
def test_clock(offset: float, state: State, word: str) -> None:
    is_mendable(judge_clock(server(offset=offset)), state, word)


def test_the_offset_is_taken_in_the_middle_of_the_round_trip() -> None:
    row: dict[str, Any] = {
        "version": 1,
        "max_connections": 1,
        "connections": 1,
        "read_only": False,
        "now": 107,
    }
    row |= {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
    seen = Server.of(row | {"in_recovery": False}, asked=100.0, answered=104.0)
    assert (seen.offset, seen.round_trip) == (5.0, 4.0)


@pytest.mark.parametrize(
    ("changes", "state", "word"),
    [
        ({}, OK, "Postgres 16, 1.0 ms"),
        ({"version": 140_011}, PROBLEM, "Postgres 14 is too old"),
        ({"in_recovery": True}, PROBLEM, "primary"),
        ({"read_only": True}, PROBLEM, "default_transaction_read_only"),
        ({"round_trip": 0.2}, WARNING, "nearer"),
    ],
)
def test_server(changes: dict[str, Any], state: State, word: str) -> None:
    is_mendable(judge_server(server(**changes), "x on h", embedded=None), state, word)


def test_durability() -> None:
    is_mendable(judge_durability(SERVER), OK)
    settings = {"fsync": "off", "full_page_writes": "on", "synchronous_commit": "off"}
    is_mendable(judge_durability(server(settings=settings)), WARNING, "fsync, synchronous_commit")
    remote = {**SERVER.settings, "synchronous_commit": "remote_apply"}
    is_mendable(judge_durability(server(settings=remote)), OK)


def test_connections() -> None:
    is_mendable(judge_connections(server(connections=79)), OK, "79 of 100")
    is_mendable(judge_connections(server(connections=80)), WARNING, "80 of 100", "PgBouncer")


def test_embedded_servers() -> None:
    lacking = SmithersError("X", "made by Postgres 15, and there is none", hint="move it over")
    is_mendable(embedded(), OK, "pid 12")
    is_mendable(embedded(running=False), OK, "stopped", "starts when needed")
    is_mendable(embedded(running=False, major=None), OK, "not made yet")
    is_mendable(embedded(running=False, lacking=lacking), PROBLEM, "Postgres 15", "move it over")
    is_mendable(embedded(lacking=lacking), WARNING, "Postgres 15")
    is_mendable(embedded(running=False, silent_pid=9), PROBLEM, "pid 9", "db stop")
    is_mendable(embedded(running=False, major=None, in_the_way=True), PROBLEM, "in the way")
    known = embedded(lacking=lacking)
    is_mendable(judge_server(SERVER, "embedded", embedded=known), WARNING, "Postgres 15")


@pytest.mark.parametrize(
    ("code", "of_ours", "state"),
    [
        ("SCHEMA_MISSING", True, WARNING),
        ("SCHEMA_MISSING", False, PROBLEM),
        ("SCHEMA_OUTDATED", True, WARNING),
        ("SCHEMA_OUTDATED", False, PROBLEM),
        ("SCHEMA_TOO_NEW", True, PROBLEM),
        ("SCHEMA_CHANGED", True, PROBLEM),
    ],
)
def test_schema(code: str, of_ours: bool, state: State) -> None:
    refusal = SmithersError(code, "it doesn't fit", hint="smithers migrate")
    is_mendable(judge_schema(refusal, embedded=of_ours, release="1"), state, "smithers migrate")


def test_a_schema_that_fits() -> None:
    is_mendable(judge_schema(None, embedded=False, release="0.1.0"), OK, "0.1.0")


def living(kind: str, version: str | None, number: int) -> dict[str, Any]:
    return {"kind": kind, "version": version, "processes": number}


def test_processes() -> None:
    is_mendable(judge_processes([], "1.0"), OK, "none lives")
    ours = [living("scheduler", "1.0", 1), living("worker", "1.0", 2)]
    is_mendable(judge_processes(ours, "1.0"), OK, "1 scheduler, 2 worker")
    mixed = [*ours, living("worker", "0.9", 1)]
    is_mendable(judge_processes(mixed, "1.0"), WARNING, "3 worker", "0.9")
    is_mendable(judge_processes([living("worker", None, 1)], "1.0"), WARNING)


def test_runs() -> None:
    fine = RunSummary({"run_id": "a"}, Verdict.RUNNING, {})
    lost = RunSummary({"run_id": "b c"}, Verdict.STUCK, {}, (Unhealthy("no-scheduler", "x"),))
    is_mendable(judge_runs([fine], limit=9), OK, "1 not ended, none stuck")
    is_mendable(judge_runs([fine, lost], limit=9), WARNING, "1 of 2", "smithers why 'b c'")
    is_mendable(judge_runs([fine, lost], limit=2), WARNING, "of the newest 2")


def test_a_check_that_raises_is_a_problem_of_that_check() -> None:
    def broken() -> Finding:
        raise ValueError("no answer from postgresql://u:secret@h/x\nsecond line")

    found = isolated("disk", broken)
    is_mendable(found, PROBLEM, "ValueError", "second line")
    assert found.check == "disk"
    assert "secret" not in found.message
    told = failed("x", SmithersError("CODE", "what", hint="how", details={"a": 1}))
    assert (told.message, told.fix, told.details) == ("what", "how", {"a": 1, "code": "CODE"})


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("print('1.2')", said("1.2\n")),
        ("raise SystemExit(3)", said("", 3)),
        ("print(repr(input()))", said("", 1)),
        ("while True: print('x' * 1000)", Said(Ending.HUNG)),
    ],
)
def test_programs_are_asked_without_input_and_heard_to_a_limit(code: str, ending: Said) -> None:
    assert ask([sys.executable, "-ISc", code], seconds=60) == ending


@pytest.mark.parametrize("before", ["", "import os; os.close(1); "])
def test_programs_that_hang_are_killed(before: str) -> None:
    begun = time.monotonic()
    code = f"{before}import time; time.sleep(60)"
    assert ask([sys.executable, "-ISc", code], seconds=0.5).ending is Ending.HUNG
    assert time.monotonic() - begun < 30


def test_a_program_that_isnt_there_or_no_program(tmp_path: Path) -> None:
    assert ask([str(tmp_path / "absent")], seconds=60).ending is Ending.MISSING
    junk = tmp_path / "junk"
    junk.write_bytes(b"\x00junk")
    junk.chmod(0o755)
    assert ask([str(junk)], seconds=60).ending is Ending.NOT_STARTED


def test_programs_are_not_told_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMITHERS_DATABASE_URL", "postgresql://u:secret@h/x")
    told = ask([sys.executable, "-ISc", "import os; print(os.environ)"], seconds=60)
    assert told.succeeded
    assert "secret" not in told.text
