"""Where the demo plays: a folder in the project's home with the workflow and a scratch copy of the
person's repository, or a sample project where there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smithers.demo.errors import DEMO_REPOSITORY_INVALID, GIT_MISSING, DemoError
from smithers.demo.sample import SAMPLE

WORKFLOW: Final = ("repo_health.py", "repo_tools.py", "repair_agent.py")
_SUFFIXES: Final = (".py", ".js", ".ts", ".go", ".rs", ".java", ".c", ".cpp", ".rb", ".sql", ".sh")
_FEWEST: Final = 6
_MOST: Final = 5_000
_CLONE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Stage:
    """The folders of one demo; `origin` is what was copied, None for the sample project."""

    folder: Path
    origin: Path | None

    @property
    def workflow(self) -> Path:
        """The workflow file."""
        return self.folder / "workflow" / WORKFLOW[0]

    @property
    def repository(self) -> Path:
        """The scratch copy."""
        return self.folder / (self.origin.name if self.origin else "sample-project")

    @property
    def scratch(self) -> Path:
        """Where the agent repairs a file."""
        return self.folder / "repair"

    @property
    def report(self) -> Path:
        """What the run writes in the end."""
        return self.folder / "report.md"


def set_stage(folder: Path, wanted: Path | None) -> Stage:
    """Make the folder of a demo. Nothing of the person's repository is changed.

    Raises DemoError: DEMO_REPOSITORY_INVALID for a `wanted` folder that isn't there, GIT_MISSING.
    """
    if shutil.which("git") is None:
        raise DemoError(
            GIT_MISSING, "the demo needs git", hint="install git, for example: apt install git"
        )
    if wanted is not None and not wanted.is_dir():
        raise DemoError(
            DEMO_REPOSITORY_INVALID,
            f"{wanted} is no folder",
            hint="name a git repository, or nothing for the one around this folder",
        )
    origin = _repository(wanted or Path.cwd())
    stage = Stage(folder, origin)
    stage.workflow.parent.mkdir(parents=True)
    for name in WORKFLOW:
        shutil.copyfile(_source_folder() / name, stage.workflow.with_name(name))
    if origin is not None and _clone(origin, stage.repository):
        return stage
    sample = Stage(folder, None)
    _write_sample(sample.repository)
    return sample


def _source_folder() -> Path:
    """An installed distribution carries the examples beside this file, a checkout at its root."""
    carried = Path(__file__).parent / "workflow"
    return carried if carried.is_dir() else Path(__file__).parents[3] / "examples"


def _repository(folder: Path) -> Path | None:
    """The root of the repository around a folder, if it holds enough source files to inspect."""
    root = _git(folder, "rev-parse", "--show-toplevel")
    if root is None or _git(folder, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        return None
    names = (_git(Path(root), "ls-tree", "-r", "-z", "--name-only", "HEAD") or "").split("\0")
    sources = [name for name in names if name.endswith(_SUFFIXES)]
    return Path(root) if len(sources) >= _FEWEST and len(names) <= _MOST else None


def _clone(origin: Path, target: Path) -> bool:
    """Clone the committed state; False when git can't, as from a damaged repository."""
    words = ("clone", "--quiet", "--no-tags", "--single-branch", str(origin), str(target))
    if _git(target.parent, *words) is not None:
        return True
    shutil.rmtree(target, ignore_errors=True)
    return False


def _write_sample(target: Path) -> None:
    for name, text in SAMPLE.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    author = ("-c", "user.name=Smithers", "-c", "user.email=demo@smithers.invalid")
    _git(target, "init", "--quiet")
    _git(target, "add", "--all")
    _git(
        target, *author, "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "A sample project"
    )


def _git(folder: Path, *words: str) -> str | None:
    """What git prints, None when it fails. The person's hooks and prompts stay out of it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", "-C", str(folder), *words],
            env={**clean, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_CLONE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
