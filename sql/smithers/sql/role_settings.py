"""Limits of every engine session, kept by the server: they hold behind a pooler too."""

from __future__ import annotations

from typing import Final

from psycopg import sql

from smithers.sql.calls import Connection, scalar, scalars

LIMITS: Final = {
    "statement_timeout": "15s",
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "15s",
}

_CHOSEN = """
select split_part(entry, '=', 1)
from pg_db_role_setting as setting
join pg_database as db on db.oid = setting.setdatabase
join pg_roles as role on role.oid = setting.setrole
cross join unnest(setting.setconfig) as entry
where db.datname = current_database() and role.rolname = current_user
"""


def apply_role_settings(connection: Connection) -> None:
    """Give our role its limits in this database, where they aren't set yet.

    Sessions that are open already keep what they had. Only missing names are written: what an
    operator chose stays.
    """
    chosen = scalars(connection, _CHOSEN)
    role = str(scalar(connection, "select current_user"))
    database = str(scalar(connection, "select current_database()"))
    for name, value in LIMITS.items():
        if name not in chosen:
            connection.execute(
                sql.SQL("alter role {} in database {} set {} = {}").format(
                    sql.Identifier(role), sql.Identifier(database), sql.Identifier(name), value
                )
            )


def limits_missing(connection: Connection) -> list[str]:
    """The limits that this session doesn't have, as when a pooler opened it before `migrate`."""
    return [
        name for name in LIMITS if scalar(connection, "select current_setting(%s)", name) == "0"
    ]
