"""What a Postgres program has to say about its end."""

from __future__ import annotations

import re


def complaint(said: bytes) -> str:
    """The first error among what a program said, in one line without its name."""
    text = said.decode(errors="replace")
    found = re.search(r"\b(?:error|fatal|panic):\s*(.+)", text, re.IGNORECASE)
    lines = text.strip().splitlines()
    return (found.group(1) if found else lines[-1] if lines else "it said nothing").strip()
