"""One mistake that a user of the client makes easily, on the line that is marked."""

from __future__ import annotations

from datetime import datetime

from smithers.client import Client


def start(client: Client, due: datetime) -> str:
    run = client.start("fix.py", {"due": due.isoformat()})
    other = client.start("fix.py", {"due": due})  # mistake
    return run.id + other.id
