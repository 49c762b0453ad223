"""What the repository-health workflow does to a repository: plain functions and their results."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

from smithers.workflow import Decision

LANGUAGES = {
    ".c": "C", ".cc": "C++", ".cpp": "C++", ".css": "CSS", ".go": "Go", ".h": "C", ".html": "HTML",
    ".java": "Java", ".js": "JavaScript", ".json": "JSON", ".kt": "Kotlin", ".lua": "Lua",
    ".php": "PHP", ".py": "Python", ".rb": "Ruby", ".rs": "Rust", ".sh": "Shell", ".sql": "SQL",
    ".swift": "Swift", ".toml": "TOML", ".ts": "TypeScript", ".tsx": "TypeScript",
    ".yaml": "YAML", ".yml": "YAML",
}  # fmt: skip
MARK = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
SAMPLE = 'def greet(name: str) -> str:\n    return f"hello {name}"\n'
PLANTED = ("def planted_one(:\n", "planted_two = (1, 2\n")


class Sources(BaseModel):
    """The tracked source files, in batches."""

    commit: str | None
    batches: list[list[str]]


class FileFacts(BaseModel):
    """What one file is like; `error` is the first line that its compiler or parser complained."""

    path: str
    language: str
    lines: int
    marks: int
    commits: int
    error: str | None


class Inspection(BaseModel):
    """The facts of one batch."""

    files: list[FileFacts]


class Scratch(BaseModel):
    """A copy of a source file with defects planted in it."""

    copy_path: str
    original: str | None


class Check(BaseModel):
    """Whether the scratch copy compiles."""

    passed: bool
    complaint: str | None


class Report(BaseModel):
    """Where the report is, and its totals."""

    path: str
    files: int
    lines: int
    marks: int
    broken: int


def list_sources(repo: str, batches: int) -> Sources:
    """List tracked regular files of known languages, in at most so many batches of like size."""
    names = git(repo, "ls-files", "-z").split("\0")
    paths = sorted(
        name
        for name in names
        if Path(name).suffix in LANGUAGES
        and (Path(repo) / name).is_file()
        and not (Path(repo) / name).is_symlink()
    )
    commit = subprocess.run(
        ["git", "-C", repo, "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return Sources(
        commit=commit or None,
        batches=[paths[start::batches] for start in range(min(batches, len(paths)))],
    )


def inspect_batch(repo: str, paths: list[str], pause: float) -> Inspection:
    """Count, compile and search each file of a batch."""
    time.sleep(pause)
    churn = commits_by_file(repo, paths)
    return Inspection(files=[inspect_file(repo, path, churn[path]) for path in paths])


def inspect_file(repo: str, path: str, commits: int) -> FileFacts:
    data = (Path(repo) / path).read_bytes()
    text = data.decode("utf-8", errors="replace")
    return FileFacts(
        path=path,
        language=LANGUAGES[Path(path).suffix],
        lines=len(data.splitlines()),
        marks=len(MARK.findall(text)),
        commits=commits,
        error=complaint_about(Path(repo) / path, text),
    )


def complaint_about(path: Path, text: str) -> str | None:
    """Give the first complaint of the file's own compiler or parser, None when it has none."""
    try:
        if path.suffix == ".py":
            compile(text, str(path), "exec", dont_inherit=True)
        elif path.suffix == ".json":
            json.loads(text)
    except (SyntaxError, ValueError) as error:
        return str(error).splitlines()[0]
    if path.suffix == ".sh":
        shell = subprocess.run(
            ["bash", "-n", str(path)], capture_output=True, text=True, check=False
        )
        return shell.stderr.splitlines()[0] if shell.returncode else None
    return None


def commits_by_file(repo: str, paths: list[str]) -> Counter[str]:
    """Count the commits that touched each path."""
    if subprocess.run(
        ["git", "-C", repo, "rev-parse", "-q", "--verify", "HEAD"], capture_output=True, check=False
    ).returncode:
        return Counter()
    log = git(repo, "log", "-z", "--format=", "--name-only", "--", *paths)
    return Counter(name.strip("\n") for name in log.split("\0") if name.strip("\n"))


def plant_defect(repo: str, folder: str, sources: Sources) -> Scratch:
    """Copy a Python file of the repository and break the copy in two places."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    original = next(
        (
            path
            for batch in sources.batches
            for path in batch
            if path.endswith(".py")
            and complaint_about(Path(repo) / path, (Path(repo) / path).read_text(errors="replace"))
            is None
        ),
        None,
    )
    source = (Path(repo) / original).read_text(errors="replace") if original else SAMPLE
    copy = Path(folder) / "scratch.py"
    copy.write_text(source.rstrip("\n") + "\n" + "".join(PLANTED))
    return Scratch(copy_path=str(copy), original=original)


def check_copy(scratch: Scratch) -> Check:
    """Compile the scratch copy."""
    path = Path(scratch.copy_path)
    complaint = complaint_about(path, path.read_text())
    return Check(passed=complaint is None, complaint=complaint)


def write_report(
    *,
    repo: str,
    report: str,
    repairs: int,
    sources: Sources,
    check: Check,
    decision: Decision,
    **batches: Inspection,
) -> Report:
    """Write the report in one rename, so that a crash leaves the old file or the new one."""
    files = [facts for batch in batches.values() for facts in batch.files]
    target = Path(report)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.write_text(
        render_report(
            repo, sources=sources, files=files, check=check, decision=decision, repairs=repairs
        )
    )
    draft.replace(target)
    return Report(
        path=str(target.resolve()),
        files=len(files),
        lines=sum(facts.lines for facts in files),
        marks=sum(facts.marks for facts in files),
        broken=sum(facts.error is not None for facts in files),
    )


def render_report(
    repo: str,
    *,
    sources: Sources,
    files: list[FileFacts],
    check: Check,
    decision: Decision,
    repairs: int,
) -> str:
    lines, counts, marks = Counter[str](), Counter[str](), Counter[str]()
    for facts in files:
        lines[facts.language] += facts.lines
        counts[facts.language] += 1
        marks[facts.language] += facts.marks
    outcome = "repaired" if check.passed else "not repaired"
    note = f": {decision.note}" if decision.note else ""
    totals = (
        f"Commit {sources.commit or '(none)'} · {len(files)} source files · "
        f"{sum(lines.values())} lines · {sum(marks.values())} marks (TODO, FIXME, XXX, HACK)"
    )
    text = [
        f"# Health of {Path(repo).resolve().name}",
        "",
        totals,
        "",
        "| language | files | lines | marks |",
        "|---|---:|---:|---:|",
        *(
            f"| {name} | {counts[name]} | {total} | {marks[name]} |"
            for name, total in lines.most_common()
        ),
        "",
        "## Most changed",
        "",
        *(
            f"- `{facts.path}`: {facts.commits} commits, {facts.lines} lines"
            for facts in busiest(files)
        ),
        "",
        "## Files that do not compile",
        "",
        *([f"- `{facts.path}`: {facts.error}" for facts in files if facts.error] or ["None."]),
        "",
        "## Repair drill",
        "",
        f"A planted defect was {outcome} in {repairs} passes.",
        "",
        f"Approved by {decision.decided_by or 'nobody'}{note}.",
        "",
    ]
    return "\n".join(text)


def busiest(files: list[FileFacts]) -> list[FileFacts]:
    return sorted(files, key=lambda facts: (-facts.commits, facts.path))[:10]


def git(repo: str, *words: str) -> str:
    done = subprocess.run(["git", "-C", repo, *words], capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"git {words[0]} failed in {repo}: {done.stderr.decode(errors='replace').strip()}"
        )
    return done.stdout.decode("utf-8", errors="surrogateescape")
