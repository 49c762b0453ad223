"""What a command that runs a fleet of its own forks its processes from.

One nursery holds what schedulers, workers and supervisors import, the other what runs user
code. The first knows the database, the second has an environment without it.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from smithers.process.environment import child_environment
from smithers.process.nursery import SOCKET_VARIABLE, Born, Nursery, NurseryGoneError
from smithers.process.settings import Settings

COMMAND: Final = "smithers.cli.main"
_ROLES: Final = (
    COMMAND,
    *(f"smithers.cli.{name}" for name in ("scheduler", "worker", "supervise")),
    *(f"smithers.{name}.main" for name in ("scheduler", "worker", "supervisor")),
)
_HOSTS: Final = (
    "smithers.worker.host",
    "smithers.scheduler.render_host",
    "smithers.scheduler.render_work",
)


@dataclass
class Nurseries:
    """Launched when they are needed. Main thread only."""

    settings: Settings
    _roles: Nursery | None = None
    _hosts: Nursery | None = None

    def prepare(self) -> None:
        """Have the one for roles be a fork of this process: call it before there are threads."""
        if self.settings.database_url is None and self._roles is None:
            self._roles = Nursery.fork(_ROLES)

    def roles(self) -> Nursery:
        """The one for schedulers, workers and supervisors."""
        if self._roles is None:
            self._roles = Nursery.launch(_ROLES, {**os.environ, **self.settings.environment()})
        return self._roles

    def hosts(self) -> Nursery:
        """The one for renderers and executors."""
        if self._hosts is None:
            url = self.settings.database_url
            environ = child_environment(None, home=str(self.settings.home), database_url=url)
            self._hosts = Nursery.launch(_HOSTS, environ)
        return self._hosts

    def bear_role(self, words: Sequence[str], *, output: int) -> Born:
        """Fork `smithers WORDS`, which prints to `output`; SIGTERM ends it when we die.

        A nursery that has died is launched anew. Raises NurseryGoneError when that dies, too.
        """
        with self._lend() as lent:
            try:
                return self._bear(words, lent, output)
            except NurseryGoneError:
                self._end_roles()
                return self._bear(words, lent, output)

    def close(self) -> None:
        """End them, and what they have forked; twice is fine, and so is asking again."""
        self._end_roles()
        self._end_hosts()

    def _bear(self, words: Sequence[str], lent: socket.socket, output: int) -> Born:
        environ = {**os.environ, **self.settings.environment()}
        passed = [(SOCKET_VARIABLE, lent.fileno())]
        return self.roles().bear(
            COMMAND,
            words,
            environ,
            output=output,
            passed=passed,
            first="SMITHERS_HOME",
            death=signal.SIGTERM,
        )

    def _lend(self) -> socket.socket:
        try:
            return self.hosts().lend()
        except NurseryGoneError:
            self._end_hosts()
            return self.hosts().lend()

    def _end_roles(self) -> None:
        if self._roles is not None:
            self._roles.close()
            self._roles = None

    def _end_hosts(self) -> None:
        if self._hosts is not None:
            self._hosts.close()
            self._hosts = None


@contextmanager
def nurseries(settings: Settings) -> Generator[Nurseries]:
    """Nurseries that end with the block. The one for hosts begins at once."""
    found = Nurseries(settings)
    try:
        found.hosts()
        yield found
    finally:
        found.close()
