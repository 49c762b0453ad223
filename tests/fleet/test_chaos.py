"""Every role killed at random moments: all runs end, nothing is done twice, the tables agree."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from support.fleet import Fleet, fleet
from support.runs import (
    approve_open,
    bodies_started_after_completion,
    connect,
    start_run,
    statuses,
)
from support.runs import signal as send_signal

ROLES = [
    "scheduler",
    "scheduler",
    "worker",
    "worker",
    "worker",
    "worker",
    "supervisor",
    "supervisor",
]
RUNS = 20
KILLS = 20  # fewer faults would mean nothing
MORE = 5
BODIES = 13  # of the mixed workflow: first, eight of the fan, three laps, last


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_roles_killed_at_random(database: str, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    log = tmp_path / "bodies.log"
    log.touch()
    kills = 0
    with fleet(database, tmp_path, ROLES, lease=1.5) as whole, connect(database) as connection:

        def begin(count: int) -> int:
            for _ in range(count):
                shape = {"log": str(log), "seconds": 0.2, "width": 8}
                run_id = start_run(connection, "mixed", shape)
                send_signal(connection, run_id, "go", {"payload": run_id})
            return count

        runs = begin(RUNS)
        deadline = time.monotonic() + 240
        quiet_from = time.monotonic() + 25  # faults stop, then everything must settle
        while (finished := statuses(connection)["finished"]) < runs or kills < KILLS:
            if finished == runs:  # they were quicker than the killer
                runs += begin(MORE)
            assert time.monotonic() < deadline, (
                f"seed {seed}, {kills} kills: {statuses(connection)}\n{whole.logs()}"
            )
            if time.monotonic() < quiet_from or kills < KILLS:
                kills += hurt_someone(whole, chance)
            approve_open(connection)
            time.sleep(0.05)
        verified = whole.cli("verify", "--json")
        assert verified.returncode == 0, f"seed {seed}: {verified.stdout}{verified.stderr}"
        assert bodies_started_after_completion(connection, log) == []
        ended = {
            tuple(line.split(" ")[1:3]) for line in log.read_text().splitlines() if line[0] == "E"
        }
        assert len(ended) == runs * BODIES


def hurt_someone(whole: Fleet, chance: random.Random) -> int:
    """Now and then kill one living process and start another in its place."""
    if chance.random() > 0.15:
        return 0
    victim = chance.choice(whole.living())
    victim.send(signal.SIGKILL)
    victim.process.wait(timeout=10)
    whole.start(victim.role)
    return 1
