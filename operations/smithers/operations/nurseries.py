"""What a command that runs a fleet of its own forks its processes from.

One nursery holds what schedulers, workers and supervisors import, the other what runs user
code. The first knows the database, the second has an environment without it.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from smithers.process.environment import child_environment
from smithers.process.nursery import Nursery
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

    def close(self) -> None:
        """End them, and what they have forked; twice is fine, and so is asking again."""
        roles, hosts = self._roles, self._hosts
        self._roles = self._hosts = None
        for nursery in (roles, hosts):
            if nursery is not None:
                nursery.close()


@contextmanager
def nurseries(settings: Settings) -> Generator[Nurseries]:
    """Nurseries that end with the block. The one for hosts begins at once."""
    found = Nurseries(settings)
    try:
        found.hosts()
        yield found
    finally:
        found.close()
