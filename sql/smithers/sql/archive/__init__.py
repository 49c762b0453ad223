"""A whole Smithers database as one file, and back: pg_dump's custom format.

What is in it: the schemas `smithers` (tables, typed outputs) and `smithers_p…` (functions). Owners
and grants are left out, so that it fits a database of another role.
"""

from smithers.sql.archive.contents import Contents, read_contents, refuse_schema
from smithers.sql.archive.errors import ArchiveError
from smithers.sql.archive.loading import count_runs, load_archive, refuse_unfit
from smithers.sql.archive.programs import connection_environment, find_client
from smithers.sql.archive.writing import write_to_file, write_to_stream

__all__ = [
    "ArchiveError",
    "Contents",
    "connection_environment",
    "count_runs",
    "find_client",
    "load_archive",
    "read_contents",
    "refuse_schema",
    "refuse_unfit",
    "write_to_file",
    "write_to_stream",
]
