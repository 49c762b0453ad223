"""Real processes of every role against one database, to be killed, stopped and counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.waiting import until

ROLES = {
    "scheduler": ["scheduler"],
    "worker": ["worker", "--slots", "4"],
    "supervisor": ["supervise", "--all"],
}


@dataclass
class Member:
    """One engine process; its standard error is in `log`."""

    role: str
    process: subprocess.Popen[bytes]
    log: Path
    stopped: bool = False

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.stopped = number is signal.SIGSTOP or (self.stopped and number is not signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait until it is reaped."""
        self.process.kill()
        self.process.wait(timeout=10)


@dataclass
class Fleet:
    """The processes of one database, each with short leases.

    Without a DSN it is the embedded database below `folder`.
    """

    dsn: str
    folder: Path
    lease: float = 2.0
    settings: dict[str, str] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **({"SMITHERS_DATABASE_URL": self.dsn} if self.dsn else {}),
            "SMITHERS_HOME": str(self.folder / ".smithers"),
            "SMITHERS_LEASE_SECONDS": str(self.lease),
            "SMITHERS_POISON_ATTEMPTS": "50",
            "SMITHERS_RESUME_LIMIT": "50",
            **self.settings,
        }

    def start(self, role: str, *words: str) -> Member:
        number = sum(member.role == role for member in self.members)
        log = self.folder / f"{role}-{number}.log"
        with log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "smithers.cli.main", *ROLES[role], *words],
                env=self.environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        member = Member(role, process, log)
        self.members.append(member)
        return member

    def living(self, role: str | None = None) -> list[Member]:
        return [
            member
            for member in self.members
            if member.alive() and (role is None or member.role == role)
        ]

    def cli(self, *words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run one smithers command and wait for it."""
        return subprocess.run(
            [sys.executable, "-m", "smithers.cli.main", *words],
            env=self.environment(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def stop(self) -> None:
        """Drain everything; kill what does not end."""
        for member in self.living():
            member.send(signal.SIGCONT)
            member.send(signal.SIGTERM)
            member.send(signal.SIGTERM)
        for member in self.members:
            try:
                member.process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                member.kill()

    def logs(self) -> str:
        """The end of every log, for the message of a failed assertion."""
        return "\n".join(
            f"── {member.log.name} (exit {member.process.poll()})\n"
            + member.log.read_text(errors="replace")[-3000:]
            for member in self.members
        )


@contextmanager
def fleet(
    dsn: str, folder: Path, roles: Sequence[str] = (), *, lease: float = 2.0, **settings: str
) -> Generator[Fleet]:
    """Start the named roles and stop everything at the end."""
    whole = Fleet(dsn, folder, lease, settings)
    try:
        for role in roles:
            whole.start(role)
        yield whole
    finally:
        whole.stop()


def held_pids(folder: Path, *, bodies: int, seconds: float = 60.0) -> list[tuple[str, int, int]]:
    """(name, pid, child's pid) of the bodies of the workflow `held`, once so many have begun."""

    def begun() -> list[tuple[str, int, int]]:
        path = folder / "pids"
        words = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        found = [(name, int(pid), int(child)) for name, pid, child in words]
        return found if len(found) >= bodies else []

    return until(begun, seconds=seconds)


def state_of(pid: int) -> str:
    """The letter of a process's state as in /proc, empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def dead(pids: Iterable[int]) -> bool:
    """Whether none of these lives; a zombie is dead."""
    return all(state_of(pid) in ("", "Z", "X") for pid in pids)


def processes_marked(text: str) -> list[int]:
    """Give the living processes whose exec environment holds `text`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if text.encode() in environment and state != "Z":
                found.append(int(entry.name))
    return found


__all__ = [
    "Fleet",
    "Member",
    "dead",
    "fleet",
    "held_pids",
    "processes_marked",
    "state_of",
    "until",
]
