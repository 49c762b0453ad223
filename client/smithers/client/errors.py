"""The errors of the client itself; all others are those of `smithers.operations`, unchanged.

SmithersError
├── WaitTimeout       WAIT_TIMEOUT      the run goes on; only the waiting has ended
└── ClientError       CLIENT_CLOSED · CONNECTIONS_BUSY
"""

from __future__ import annotations

from typing import Final

from smithers.workflow.errors import SmithersError

WAIT_TIMEOUT: Final = "WAIT_TIMEOUT"
CLIENT_CLOSED: Final = "CLIENT_CLOSED"
CONNECTIONS_BUSY: Final = "CONNECTIONS_BUSY"


class WaitTimeout(SmithersError):
    """A run was not where it was waited for in time; `details["status"]` is where it was."""


class ClientError(SmithersError):
    """The client can't take the call: it is closed, or all its connections are in use."""


def timed_out(run_id: str, status: str, until: str, seconds: float) -> WaitTimeout:
    """Give the error that says that a run has not come so far."""
    return WaitTimeout(
        WAIT_TIMEOUT,
        f"run {run_id} is {status}, and not {until} after {seconds:g} s; it was left alone",
        details={"run_id": run_id, "status": status, "until": until, "seconds": seconds},
        hint=f"run.why(), or smithers why {run_id}, says what it waits for",
    )
