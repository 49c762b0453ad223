"""A trigger for the tests: it refuses the moves of runs, nodes and attempts that no table has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, LiteralString

from psycopg import sql

from smithers.sql.calls import Connection
from smithers.workflow.states import ATTEMPT_MOVES, NODE_MOVES, RUN_MOVES

WATCHED: tuple[tuple[LiteralString, LiteralString, Iterable[tuple[Any, Any]]], ...] = (
    ("run_state", "status", RUN_MOVES),
    ("nodes", "state", NODE_MOVES),
    ("attempts", "state", ATTEMPT_MOVES),
)


def refuse_illegal_moves(connection: Connection) -> None:
    """Install the triggers in a database; a copy made from it has them too."""
    for table, column, moves in WATCHED:
        legal = ", ".join(f"{before}>{after}" for before, after in sorted(moves))
        connection.execute(
            sql.SQL(
                """
                create function smithers.{name}() returns trigger language plpgsql as $$
                begin
                    if (old.{column} || '>' || new.{column})
                       <> all (string_to_array({legal}, ', ')) then
                        raise exception 'illegal move of {table}: % to % (%)',
                            old.{column}, new.{column}, new.run_id;
                    end if;
                    return new;
                end $$"""
            ).format(
                name=sql.Identifier(f"check_move_{table}"),
                column=sql.Identifier(column),
                table=sql.SQL(table),
                legal=sql.Literal(legal),
            )
        )
        connection.execute(
            sql.SQL(
                "create trigger check_move before update on smithers.{table} for each row"
                " when (old.{column} is distinct from new.{column})"
                " execute function smithers.{name}()"
            ).format(
                name=sql.Identifier(f"check_move_{table}"),
                column=sql.Identifier(column),
                table=sql.Identifier(table),
            )
        )
