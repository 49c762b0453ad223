"""What does not depend on the machine: counts, bytes and buffers, against recorded limits.

A scripted scheduler and worker drive the stored functions on a throwaway cluster (no autovacuum, no
full-page images). Before anything is measured every hot function has run twelve times on empty
tables, so that a plan made there would show.
"""

from __future__ import annotations

import json
from pathlib import Path

import psycopg

from bench.scripted import Script
from smithers.sql import codec
from smithers.sql.calls import Connection
from smithers.sql.schema import migrate

LIMITS = Path(__file__).with_name("limits.json")
TASKS = 2000
BATCH = 100
STEPS = 100
BACKLOG = 10_000
CLAIM = (
    "select * from smithers_p1.claim_tasks({owner}, gen_random_uuid(), array['default'],"
    " 1, 1, '30 s')"
)


def measure(dsn: str) -> dict[str, float]:
    """Measure everything on an empty database; the names are those of limits.json."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        codec.install(connection)
        migrate(connection)
        plan_on_empty_tables(connection)
        return {
            **fan_out(connection),
            **sequence(connection),
            **buffers(connection),
            **hot_shares(connection),
        }


def plan_on_empty_tables(connection: Connection) -> None:
    script = Script(connection)
    script.begin()
    for number in range(12):
        script.load()
        script.frame([f"w{number}"])
        script.complete(script.claim(1))


def fan_out(connection: Connection) -> dict[str, float]:
    """One run of many tasks, claimed and finished in batches."""
    script = Script(connection)
    script.begin()
    stored, wal = stored_bytes(connection), wal_bytes(connection)
    script.load()
    script.frame([f"task-{number:05}" for number in range(TASKS)])
    for _ in range(TASKS // BATCH):
        script.complete(script.claim(BATCH))
    script.load()
    script.frame([], status="finished")
    return {
        "statements per task, batch 100": script.statements / TASKS,
        "WAL bytes per task": (wal_bytes(connection) - wal) / TASKS,
        "stored bytes per task": (stored_bytes(connection) - stored) / TASKS,
    }


def sequence(connection: Connection) -> dict[str, float]:
    """One task after another: load, frame, claim, complete."""
    script = Script(connection)
    script.begin()
    wal = wal_bytes(connection)
    for number in range(STEPS):
        script.load()
        script.frame([f"step-{number}"])
        script.complete(script.claim(1))
    return {
        "statements per step": script.statements / STEPS,
        "WAL bytes per step": (wal_bytes(connection) - wal) / STEPS,
    }


def buffers(connection: Connection) -> dict[str, float]:
    """Pages that one call touches, with history and a backlog."""
    script = Script(connection)
    script.begin()
    script.load()
    script.frame([f"backlog-{number:05}" for number in range(BACKLOG)])
    (task,) = script.claim(1)
    items = codec.encode(
        [
            {
                "run_id": task.run_id,
                "node_id": task.node_id,
                "iteration": 0,
                "attempt": task.attempt,
                "claim_id": str(task.claim_id),
                "name": "note",
                "shape": "ab" * 32,
                "output": {"note": "twenty bytes of text"},
            }
        ]
    )
    return {
        "buffers per claim of one": touched(connection, CLAIM.format(owner=script.worker_id)),
        "buffers per beat of one": touched(
            connection,
            "select * from smithers_p1.heartbeat(%s, %s::jsonb, '30 s')",
            script.worker_id,
            items,
        ),
        "buffers per completion of one": touched(
            connection, "select * from smithers_p1.complete_attempts(%s::jsonb, false)", items
        ),
    }


def hot_shares(connection: Connection) -> dict[str, float]:
    """How many updates stay on their page without touching an index; given as what is lacking."""
    script = Script(connection)
    script.begin()
    script.load()
    script.frame([f"beat-{number:03}" for number in range(200)])
    tasks = script.claim(200)
    before = updates(connection)
    for _ in range(50):
        script.beat(tasks)
    for task in tasks:
        script.complete([task])
    after = updates(connection)
    return {
        f"updates of {table} that are not HOT, %": 100
        * (1 - (after[table][1] - before[table][1]) / (after[table][0] - before[table][0]))
        for table in ("leases", "run_state")
    }


def touched(connection: Connection, query: str, *params: object) -> float:
    """Pages of the tenth call in a session, rolled back each time."""
    plan: list[dict[str, dict[str, int]]] = []
    for _ in range(10):
        with connection.transaction(force_rollback=True):
            row = connection.execute(
                f"explain (analyze, buffers, format json) {query}".encode(), params or None
            ).fetchone()
            assert row is not None
            plan = row[0]
    root = plan[0]["Plan"]
    return root["Shared Hit Blocks"] + root["Shared Read Blocks"]


def updates(connection: Connection) -> dict[str, tuple[int, int]]:
    connection.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    found = connection.execute(
        "select relname, n_tup_upd, n_tup_hot_upd from pg_stat_user_tables"
        " where schemaname = 'smithers'"
    ).fetchall()
    return {name: (all_of_them, hot) for name, all_of_them, hot in found}


def wal_bytes(connection: Connection) -> int:
    row = connection.execute("select pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None
    return int(row[0])


def stored_bytes(connection: Connection) -> int:
    """Size of every table with its indexes, after a vacuum."""
    for (name,) in connection.execute(
        "select quote_ident(relname) from pg_stat_user_tables where schemaname = 'smithers'"
    ).fetchall():
        connection.execute(f"vacuum smithers.{name}".encode())
    row = connection.execute(
        "select sum(pg_total_relation_size(relid)) from pg_stat_user_tables"
        " where schemaname = 'smithers' and relname not in ('ready_tasks', 'leases')"
    ).fetchone()
    assert row is not None
    return int(row[0])


def judge(measured: dict[str, float]) -> list[str]:
    """Say what lies above its recorded limit."""
    limits: dict[str, float] = json.loads(LIMITS.read_text())
    assert limits.keys() == measured.keys(), limits.keys() ^ measured.keys()
    return [
        f"{name}: {measured[name]:.2f}, limit {limit}"
        for name, limit in limits.items()
        if measured[name] > limit
    ]
