"""An agent without a model: reads its prompt on standard input, edits the file named, answers.

    Repair PATH: remove the first line that its compiler rejects. Think for SECONDS seconds first.

The answer, `{"removed": LINE or null}`, is the last thing that it prints, as an agent's must be.
"""

import json
import re
import sys
import time
from pathlib import Path


def main(prompt: str) -> None:
    """Do what the prompt asks for."""
    asked = re.fullmatch(
        r"Repair (.+): remove .+ Think for ([\d.]+) seconds first\.", prompt.strip()
    )
    if asked is None:
        sys.exit(f"a prompt that this script doesn't know: {prompt!r}")
    print(f"thinking about {asked[1]} for {asked[2]} s", flush=True)
    time.sleep(float(asked[2]))
    removed = repair(Path(asked[1]))
    print(json.dumps({"removed": removed}))


def repair(path: Path) -> str | None:
    """Remove the line that the compiler complains about first, in one rename; return it."""
    lines = path.read_text().splitlines(keepends=True)
    try:
        compile("".join(lines), str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        removed = lines.pop((error.lineno or len(lines)) - 1)
    else:
        return None
    draft = path.with_suffix(".edited")
    draft.write_text("".join(lines))
    draft.replace(path)
    return removed.rstrip("\n")


if __name__ == "__main__":
    main(sys.stdin.read())
