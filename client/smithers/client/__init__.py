"""Smithers from a program or a web service: start, wait, signal, decide, read.

with Client() as client:
    run = client.start("fix.py", {"title": "broken login"}, idempotency_key="ticket-42")
    print(run.wait(timeout=60).verdict)

Every error is a SmithersError with a stable `code`; those that a caller is likely to catch:

    DatabaseUnavailable   the database doesn't answer; the next call tries again
    UnknownRun            there is no such run
    Refused               the run is not in a state for that: RUN_EXISTS, APPROVAL_UNKNOWN, …
    OperationError        what was asked for can't be: IDEMPOTENCY_KEY_REUSED, OUTPUT_MISSING, …
    BundleError, RenderError   the workflow's file or its input can't be used: INPUT_INVALID, …
    ReadError             an output doesn't fit the model: OUTPUT_MISMATCH
    WaitTimeout           the run goes on; only the waiting has ended
    ClientError           CLIENT_CLOSED, CONNECTIONS_BUSY
"""

from smithers.bundle.errors import BundleError
from smithers.client.client import Client
from smithers.client.errors import ClientError, WaitTimeout
from smithers.client.receipts import Receipt
from smithers.client.run import Run
from smithers.client.values import JsonInput
from smithers.operations.errors import OperationError
from smithers.operations.results import (
    Admitted,
    EventLine,
    NodeOutput,
    Reason,
    RunStatus,
    RunSummary,
    Why,
)
from smithers.operations.verdict import Verdict
from smithers.process.settings import SettingsError
from smithers.sql.codec import BadValue
from smithers.sql.database_errors import DatabaseUnavailable
from smithers.sql.errors import Refused, UnknownRun
from smithers.workflow.errors import ReadError, RenderError, SmithersError
from smithers.workflow.states import RunStatus as RunState

__all__ = [
    "Admitted",
    "BadValue",
    "BundleError",
    "Client",
    "ClientError",
    "DatabaseUnavailable",
    "EventLine",
    "JsonInput",
    "NodeOutput",
    "OperationError",
    "ReadError",
    "Reason",
    "Receipt",
    "Refused",
    "RenderError",
    "Run",
    "RunState",
    "RunStatus",
    "RunSummary",
    "SettingsError",
    "SmithersError",
    "UnknownRun",
    "Verdict",
    "WaitTimeout",
    "Why",
]
