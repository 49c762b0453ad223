"""`make demo`: the repository-health workflow on a repository; a second process approves."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from secrets import token_hex

HERE = Path(__file__).resolve().parent
SMITHERS = Path(sys.executable).with_name("smithers")
PARKED = 3


def main(words: list[str]) -> int:
    """Run the demo on the repository named, else on this one."""
    repo = Path(words[0] if words and words[0] else HERE.parent).resolve()
    run = f"demo-{token_hex(3)}"
    report = Path(tempfile.gettempdir()) / f"repo-health-{run}.md"
    source = str(HERE / "repo_health.py")
    began = time.monotonic()
    code = smithers(
        "up",
        source,
        "--run-id",
        run,
        "--input",
        json.dumps({"repo": str(repo), "report": str(report)}),
    )
    if code != PARKED:
        return code
    smithers(
        "approve" if decide(run) else "deny",
        run,
        "--no-resume",
        "--by",
        "make demo",
        "--note",
        "the figures look right",
    )
    code = smithers("up", source, "--run-id", run, "--resume")
    if code:
        return code
    print(
        f"\n{report.read_text()}\nreport: {report} · run: {run} · {time.monotonic() - began:.1f} s"
    )
    return smithers("verify", run)


def smithers(*words: str) -> int:
    """Run one smithers command in a process of its own, as a person would."""
    print(f"$ smithers {shlex.join(words)}", flush=True)
    return subprocess.run([SMITHERS, *words], check=False).returncode


def decide(run: str) -> bool:
    """Ask the person at the terminal; without one the answer is yes."""
    if not sys.stdin.isatty():
        return True
    return input(f"Run {run} waits for you. Write the report? [Y/n] ").strip().lower() not in {
        "n",
        "no",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
