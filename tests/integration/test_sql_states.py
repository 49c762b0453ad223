"""The states of the tables are the states of the core, and the whole suite runs under its moves."""

from __future__ import annotations

import re
from enum import StrEnum

import psycopg
import pytest

from smithers.sql.calls import Connection
from smithers.workflow.states import AttemptState, NodeKind, NodeState, Origin, RunStatus
from support.runs import start_run


@pytest.mark.parametrize(
    ("constraint", "states"),
    [
        ("run_state_status_check", RunStatus),
        ("nodes_state_check", NodeState),
        ("attempts_state_check", AttemptState),
        ("attempts_origin_check", Origin),
    ],
)
def test_checks_name_the_states_of_the_core(
    connection: Connection, constraint: str, states: type[StrEnum]
) -> None:
    row = connection.execute(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = %s", [constraint]
    ).fetchone()
    assert row is not None
    assert set(re.findall(r"'([a-z-]+)'::text", row[0])) == {str(state) for state in states}


def test_every_kind_of_node_can_be_stored(connection: Connection) -> None:
    row = connection.execute(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'nodes_kind_check'"
    ).fetchone()
    assert row is not None
    assert {str(kind) for kind in NodeKind} <= set(re.findall(r"'([a-z-]+)'::text", row[0]))


def test_an_illegal_move_is_refused_in_tests(connection: Connection) -> None:
    run_id = start_run(connection, "bad_tasks", {"fault": "none"})
    connection.execute(
        "update smithers.run_state set status = 'finished' where run_id = %s", [run_id]
    )
    with pytest.raises(psycopg.errors.RaiseException, match="illegal move of run_state"):
        connection.execute(
            "update smithers.run_state set status = 'paused' where run_id = %s", [run_id]
        )
