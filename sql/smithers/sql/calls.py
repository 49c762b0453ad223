"""How a stored function or query is called: one statement, rows as values, errors translated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg.rows import class_row, scalar_row

from smithers.sql.errors import translated

Connection = psycopg.Connection[Any]
Row = TypeVar("Row")


def rows(
    connection: Connection, kind: type[Row], query: LiteralString | bytes, *params: object
) -> list[Row]:
    """Run one statement and give its rows as frozen values of `kind`."""
    with translated(), connection.cursor(row_factory=class_row(kind)) as cursor:
        return cursor.execute(query, params).fetchall()


def scalars(connection: Connection, query: LiteralString | bytes, *params: object) -> list[Any]:
    """Run one statement and give the first column of every row."""
    with translated(), connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query, params).fetchall()


def scalar(connection: Connection, query: LiteralString | bytes, *params: object) -> Any:
    """Run one statement and give the first column of its first row, None without a row."""
    with translated(), connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query, params).fetchone()


def perform(connection: Connection, query: LiteralString, *params: object) -> None:
    """Run one statement for its effect."""
    with translated():
        connection.execute(query, params)


def flags(
    connection: Connection, query: LiteralString, items: Sequence[object], *params: object
) -> list[bool]:
    """Run a batch function that returns (ord, accepted); give `accepted` in the order of items."""
    with translated():
        found = dict(connection.execute(query, params).fetchall())
    return [bool(found[position]) for position in range(1, len(items) + 1)]
