"""Everything at once on the same three runs: no deadlock, a gapless log, nothing broken."""

from __future__ import annotations

import random
import threading
from collections import Counter
from datetime import timedelta
from uuid import uuid4

import psycopg

from smithers.operations.verifying import verify
from smithers.sql import operator, scheduler, supervisor, worker
from smithers.sql.calls import Connection
from smithers.sql.errors import Fenced, Refused
from smithers.workflow.errors import SmithersError
from support import factory
from support.runs import connect

RUNS = ("r0", "r1", "r2")
TASKS = [f"t{number:02}" for number in range(40)]
THREADS = 6
OPERATIONS = 120  # of each thread
SHAPE = {"name": "o", "shape": "0" * 64, "fields": []}


class Actor:
    """One thread with its own connection and process rows, doing whatever chance says."""

    def __init__(self, dsn: str, seed: int) -> None:
        self.connection = connect(dsn)
        self.chance = random.Random(seed)
        self.scheduler = factory.register(self.connection, "scheduler")
        self.worker = factory.register(self.connection, "worker")
        self.done: Counter[str] = Counter()
        self.failed: list[str] = []

    def live(self) -> None:
        acts = [self.advance, self.work, self.work, self.beat_and_reclaim, self.stop, self.due]
        with self.connection:
            for _ in range(OPERATIONS):
                act = self.chance.choice(acts)
                try:
                    act()
                except (Refused, Fenced):
                    self.done["refused"] += 1
                except (psycopg.Error, SmithersError) as error:
                    self.failed.append(f"{act.__name__}: {error}")
                self.done[act.__name__] += 1

    def advance(self) -> None:
        """One frame of each run that can be had: pending tasks become ready."""
        for run in scheduler.take_runs(
            self.connection, self.scheduler, uuid4(), limit=3, resume_limit=10**6
        ):
            token = factory.token(run, self.scheduler)
            if run.stopping:
                scheduler.settle_request(self.connection, token)
                continue
            nodes = scheduler.load_run(self.connection, run.run_id)["nodes"]
            known = {node[0] for node in nodes}
            mounted = [name for name in TASKS if name not in known]
            pending = [node[0] for node in nodes if node[2] == "pending" and not node[9]]
            keys = [{"node_id": name, "iteration": 0} for name in mounted]
            queue = {"queue": "default", "priority": 0}
            described = {"descriptor_hash": factory.DESCRIPTOR_HASH, "upstream": []}
            parts = factory.frame(
                self.connection,
                run,
                self.scheduler,
                descriptors=[{"hash": factory.DESCRIPTOR_HASH, "body": factory.DESCRIPTOR}],
                mount=[{**key, "kind": "compute", **described} for key in keys],
                ready=[{"node_id": n, "iteration": 0, **queue} for n in [*mounted, *pending][:7]],
            )
            scheduler.commit_frame(self.connection, parts)
        if self.chance.random() < 0.5:
            scheduler.give_up_runs(self.connection, self.scheduler, list(RUNS))

    def work(self) -> None:
        """Claim a few, then finish some, fail some, leave some to be reclaimed."""
        lease = self.chance.choice([timedelta(seconds=30), timedelta(seconds=-1)])
        tasks = factory.claim(self.connection, self.worker, limit=5, lease=lease)
        items = [
            {
                "run_id": task.run_id,
                "node_id": task.node_id,
                "iteration": 0,
                "attempt": task.attempt,
                "claim_id": str(task.claim_id),
            }
            for task in tasks
        ]
        self.chance.shuffle(items)
        third = len(items) // 3
        if items[:third]:
            ended = [{**each, "state": "failed", "retry_in": 0} for each in items[:third]]
            worker.end_attempts(self.connection, ended)
        result = {"name": "o", "shape": SHAPE["shape"], "output": {}}
        if items[third:]:
            worker.log_starts(self.connection, items[third:])
            worker.complete_attempts(
                self.connection, [{**each, **result} for each in items[third:-1] or items[third:]]
            )

    def beat_and_reclaim(self) -> None:
        stale = supervisor.stale_leases(self.connection)
        self.chance.shuffle(stale)
        items = [
            {
                "run_id": each.run_id,
                "node_id": each.node_id,
                "iteration": 0,
                "attempt": each.attempt,
                "claim_id": str(each.claim_id),
            }
            for each in stale
        ]
        if items and self.chance.random() < 0.3:
            worker.heartbeat(self.connection, self.worker, items, timedelta(seconds=-1))
        elif items:
            supervisor.reclaim_attempts(self.connection, items, poison=10**6)

    def stop(self) -> None:
        run_id = self.chance.choice(RUNS)
        act = self.chance.choice([operator.pause_run, operator.cancel_run, operator.resume_run])
        act(self.connection, run_id)
        if act is not operator.resume_run:
            operator.resume_run(self.connection, run_id)

    def due(self) -> None:
        scheduler.fire_due(self.connection)
        signal = {"run_id": self.chance.choice(RUNS), "name": "s", "request_id": uuid4().hex}
        operator.send_signal(self.connection, signal)


def test_a_mix_of_all_functions_never_deadlocks_and_leaves_the_rows_whole(
    database: str, connection: Connection
) -> None:
    seed = random.randrange(2**32)
    scheduler.register_outputs(connection, [SHAPE])
    operator.put_source(connection, "0" * 64, {}, b"")
    for run_id in RUNS:
        factory.make_run(connection, run_id)
    actors = [Actor(database, seed + number) for number in range(THREADS)]
    threads = [threading.Thread(target=actor.live) for actor in actors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line for actor in actors for line in actor.failed] == [], f"seed {seed}"
    total = sum((actor.done for actor in actors), Counter[str]())
    assert min(total[each] for each in ("advance", "work", "stop", "beat_and_reclaim")) > 50, total
    row = connection.execute("select count(*) from smithers.outputs_o").fetchone()
    assert row is not None
    assert row[0] >= len(RUNS) * len(TASKS) / 6, f"{row[0]} outputs make no mix: {total}"
    for run_id, last, counted in connection.execute(
        "select run_id, max(seq), count(*) from smithers.events group by run_id"
    ).fetchall():
        assert last == counted, run_id
    assert verify(connection) == [], f"seed {seed}"
