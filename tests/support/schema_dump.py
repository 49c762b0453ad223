"""The tables of a migrated database as one text; run as a script it writes docs/schema.sql.

Only the tables: the functions can be read in their own files.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from smithers.sql.embedded import find_binaries
from support.postgres import TestServer, migrated_database, test_server

HEAD = """\
-- The tables as they are after all migrations. Written by `make schema`; don't edit it.
-- It is here so that a review shows what a migration does.

"""
MAJOR = 18


def dump(server: TestServer, database: str) -> str:
    """What pg_dump says of the schema `smithers`, without what differs from run to run."""
    program = find_binaries(major=MAJOR).program("pg_dump")
    done = subprocess.run(
        [program, "--schema-only", "--no-owner", "--schema=smithers", server.url(database)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    return HEAD + normalised(done.stdout)


def normalised(text: str) -> str:
    """Without pg_dump's comments, session settings, random marks and runs of blank lines."""
    kept = [
        line
        for line in text.splitlines()
        if not line.startswith(("--", "SET ", "\\", "SELECT pg_catalog.set_config"))
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n"


def main(target: Path) -> None:
    """Write the dump to a file."""
    with test_server() as server, migrated_database(server) as database:
        target.write_text(dump(server, database), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
