"""Children: channel, output, exit codes, death with the parent. Real processes throughout."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from smithers.process.channel import ChannelClosedError
from smithers.process.child import Child, ChildSpec, Spawner, SpawnRefusedError
from smithers.process.environment import PARENT_VARIABLE
from smithers.process.output import TAIL_BYTES, Pump
from smithers.process.procfs import process
from smithers.process.wake import Wake
from support.waiting import until

ECHO = """
from smithers.process.child import enter_child
channel = enter_child()
while True:
    try:
        channel.send(channel.receive())
    except Exception:
        break
"""


@pytest.fixture
def wake() -> Generator[Wake, None, None]:
    wake = Wake()
    yield wake
    wake.close()


@pytest.fixture
def spawner(wake: Wake) -> Generator[Spawner, None, None]:
    pump = Pump()
    spawner = Spawner(wake.set, pump=pump)
    yield spawner
    spawner.close()
    pump.close()


def python(code: str) -> ChildSpec:
    return ChildSpec(argv=[sys.executable, "-P", "-c", code], environ=dict(os.environ))


def finish(child: Child) -> None:
    child.kill()
    child.close()


def test_a_channel_carries_any_text(spawner: Spawner) -> None:
    child = spawner.spawn(python(ECHO))
    for message in ({"a": [1, None, "\0\ud800\uffff"]}, "x" * 3_000_000, 2**70):
        child.channel.send(message, timeout=20)
        assert child.channel.receive(timeout=20) == message
    finish(child)


def test_reading_has_a_deadline_and_sees_the_end(spawner: Spawner) -> None:
    child = spawner.spawn(python("import time; time.sleep(60)"))
    with pytest.raises(TimeoutError):
        child.channel.receive(timeout=0.01)
    child.signal(signal.SIGKILL)
    assert child.wait(20) == -signal.SIGKILL
    with pytest.raises(ChannelClosedError):
        child.channel.receive(timeout=20)
    finish(child)


def test_exit_codes_and_signals_are_told_apart(spawner: Spawner) -> None:
    quiet = spawner.spawn(python("raise SystemExit(7)"))
    aborted = spawner.spawn(python("import os; os.abort()"))
    assert quiet.wait(20) == 7
    assert aborted.wait(20) == -signal.SIGABRT
    finish(quiet)
    finish(aborted)


def test_an_end_is_seen_though_a_grandchild_holds_the_pipes(spawner: Spawner) -> None:
    child = spawner.spawn(python("import subprocess; subprocess.Popen(['sleep', '600'])"))
    assert child.wait(20) == 0
    assert child.kill() == 1
    child.close()


def test_output_is_drained_kept_at_its_end_and_copied_to_a_log(
    spawner: Spawner, tmp_path: Path
) -> None:
    code = (
        "import sys; sys.stdout.write('a' * 300_000); sys.stdout.flush(); sys.stderr.write('end')"
    )
    child = spawner.spawn(python(code))
    log = tmp_path / "deep" / "log"
    child.output.begin(log)
    assert child.wait(20) == 0
    tail = child.output.end()
    assert tail.endswith("aend")
    assert len(tail) == TAIL_BYTES
    assert log.stat().st_size == 300_003
    finish(child)


def test_output_above_the_limit_is_told_once_and_not_stored(
    spawner: Spawner, tmp_path: Path
) -> None:
    child = spawner.spawn(python("while True: print('x' * 10_000)"))
    told: list[int] = []
    log = tmp_path / "log"
    child.output.begin(log, limit=100_000, on_overflow=lambda: told.append(1))
    until(lambda: told)
    until(lambda: child.output.size > 1_000_000)
    assert told == [1]
    assert log.stat().st_size <= 100_000
    finish(child)


def test_another_thread_spawns_by_way_of_the_owner(spawner: Spawner, wake: Wake) -> None:
    spawned: list[Child] = []
    thread = threading.Thread(target=lambda: spawned.append(spawner.spawn(python(ECHO))))
    thread.start()
    assert wake.wait(20)
    assert spawner.serve() == 1
    thread.join(20)
    finish(spawned[0])


def test_a_closed_spawner_refuses_also_those_who_wait(spawner: Spawner, wake: Wake) -> None:
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            spawner.spawn(python(ECHO))
        except SpawnRefusedError as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert wake.wait(20)
    spawner.close()
    thread.join(20)
    assert len(errors) == 1
    with pytest.raises(SpawnRefusedError):
        spawner.spawn(python(ECHO))


def test_a_child_dies_with_its_parent(spawner: Spawner) -> None:
    middle = f"""
import os, sys, threading
from smithers.process.child import ChildSpec, enter_child, spawn
channel = enter_child()
spec = ChildSpec(argv=[sys.executable, "-P", "-c", {ECHO!r}], environ=dict(os.environ))
child = spawn(spec)
child.channel.send("ready?")
channel.send([child.channel.receive(timeout=20), child.pid])
channel.receive()
"""
    child = spawner.spawn(python(middle))
    answer = child.channel.receive(timeout=20)
    assert isinstance(answer, list)
    grandchild = answer[1]
    child.signal(signal.SIGKILL)
    assert child.wait(20) == -signal.SIGKILL
    until(lambda: (proc := process(grandchild)) is None or proc.dead)
    finish(child)


def test_a_child_whose_parent_is_gone_already_exits(spawner: Spawner) -> None:
    code = f"import os; os.environ[{PARENT_VARIABLE!r}] = '1'\n" + ECHO
    child = spawner.spawn(python(code))
    assert child.wait(20) == 1
    finish(child)
