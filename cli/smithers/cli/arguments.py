"""What commands take apart by hand: JSON from the command line, and `--resume [true|false]`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from smithers.workflow.errors import SmithersError


def read_json(text: str, *, option: str, code: str) -> object:
    """Read `JSON`, `@file` or `-` (standard input). Raises SmithersError with `code`."""
    try:
        match text:
            case "-":
                source = sys.stdin.read()
            case _ if text.startswith("@"):
                source = Path(text[1:]).read_text(encoding="utf-8")
            case _:
                source = text
        return json.loads(source, parse_constant=_refuse_constant)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it isn't UTF-8"
        raise SmithersError(code, f"{option}: {text[1:]} can't be read: {why}") from error
    except (ValueError, RecursionError) as error:
        raise SmithersError(
            code, f"{option} isn't JSON: {error}", hint=f"quote it: {option} '{{\"key\": 1}}'"
        ) from error


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def normalise_resume(arguments: Sequence[str]) -> list[str]:
    """Rewrite `--resume [true|false]` as `--resume` or nothing; any other next word is FILE."""
    words, rest = list(arguments), []
    if "--" in words:
        cut = words.index("--")
        words, rest = words[:cut], words[cut:]
    kept: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--resume" and words and words[0].lower() in {"true", "false"}:
            word = f"--resume={words.pop(0)}"
        if word.lower() == "--resume=false":
            continue
        kept.append("--resume" if word.lower() == "--resume=true" else word)
    return [*kept, *rest]
