"""Output tables: shapes side by side, awkward names, any text that Python can hold."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smithers.sql import codec, scheduler
from smithers.sql.calls import Connection
from support.runs import connect


def register(connection: Connection, name: str, fields: list[tuple[str, str, bool]]) -> str:
    """Make the table of a shape; give the table's name."""
    shape = hashlib.sha256(repr(fields).encode()).hexdigest()
    described = [{"name": n, "type": t, "nullable": null} for n, t, null in fields]
    scheduler.register_outputs(connection, [{"name": name, "shape": shape, "fields": described}])
    row = connection.execute(
        "select table_name from smithers.output_tables where name = %s and shape = %s",
        [name, shape],
    ).fetchone()
    assert row is not None
    return str(row[0])


def keep(connection: Connection, table: str, node_id: str, output: dict[str, Any]) -> Any:
    """Store an output as a completion does, and read it back as a render does."""
    rows = [
        {
            "table": table,
            "run_id": "r",
            "node_id": node_id,
            "iteration": 0,
            "seq": 1,
            "attempt": 1,
            "claim_id": None,
            "output": output,
        }
    ]
    connection.execute("select smithers_p1.insert_outputs(%s::jsonb)", [codec.encode(rows)])
    row = connection.execute(
        f"select output from smithers.select_{table}('r', %s)".encode(), [node_id]
    ).fetchone()
    assert row is not None
    return row[0]


@pytest.fixture
def engine(database: str) -> Generator[Connection]:
    """A connection that reads values as the engine does."""
    with connect(database) as connection:
        yield connection


def test_added_nullable_fields_widen_the_table_and_others_get_their_own(engine: Connection) -> None:
    first = register(engine, "plan", [("title", "str", False)])
    assert first == "outputs_plan"
    keep(engine, first, "old", {"title": "a"})
    assert register(engine, "plan", [("title", "str", False), ("n", "int", True)]) == first
    assert keep(engine, first, "new", {"title": "b", "n": 7}) == {"title": "b", "n": 7}
    assert register(engine, "plan", [("title", "str", False), ("x", "float", True)]) == first
    assert keep(engine, first, "third", {"title": "c", "x": 0.5}) == {
        "title": "c",
        "n": None,
        "x": 0.5,
    }
    other = register(engine, "plan", [("title", "int", False)])
    assert other.startswith("outputs_plan_")
    assert keep(engine, other, "number", {"title": 1}) == {"title": 1}


def test_awkward_fields_survive(engine: Connection) -> None:
    names = [
        "attempt",
        "seq",
        "run_id",
        "Order",
        'quo"te',
        "semi;colon --",
        "x" * 80,
        "x" * 81,
        "tail_",
    ]
    table = register(engine, "awkward", [(name, "str", True) for name in names])
    value = {name: f"value of {name}" for name in names}
    assert keep(engine, table, "n", value) == value
    wide = [(f"field_{number}", "int", True) for number in range(120)]
    table = register(engine, "wide", wide)
    value_of = {name: number for number, (name, _, _) in enumerate(wide)}
    assert keep(engine, table, "n", value_of) == value_of
    assert keep(engine, register(engine, "nothing", []), "n", {}) == {}


def test_two_at_once_make_one_table(database: str) -> None:
    tables: list[str] = []

    def make() -> None:
        with connect(database) as connection:
            tables.append(register(connection, "raced", [("a", "str", False)]))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tables == ["outputs_raced"] * 6


def test_what_json_has_no_word_for_is_refused_before_any_write() -> None:
    for value in (float("nan"), float("inf"), {"deep": [-float("inf")]}, 10**5000, {1: object()}):
        with pytest.raises(codec.BadValue):
            codec.encode(value)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(-1e15, 1e15)  # from 1e16 on jsonb writes a float as a whole number
    | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=()), max_size=5), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(st.characters(exclude_categories=())), value=ANYTHING)
def test_any_value_comes_back_as_it_went(connection: Connection, text: str, value: object) -> None:
    codec.install(connection)
    row = connection.execute(
        "select d, jsonb_build_object('t', d->>'t') from (select %s::jsonb as d) x",
        [codec.encode({"t": text, "v": value})],
    ).fetchone()
    assert row is not None
    assert row[0]["t"] == row[1]["t"] == text
    assert row[0]["v"] == value
