"""What operations refuse before anything is written, each with a code of its own.

`RUN_ID_INVALID` · `RUN_ID_MISSING` a resume names no run · `RUN_EXISTS` (also from the
database) · `RUN_INPUT_DIFFERS` a resume with another input · `RESUME_METADATA_MISMATCH` the
file isn't the one that the run began with · `RUN_ALREADY_ENDED` · `INPUT_NOT_JSON` ·
`DATA_NOT_JSON` · `ANSWER_INVALID` an answer doesn't fit its schema · `NODE_UNKNOWN` ·
`OUTPUT_MISSING` · `SIGNAL_NAME_INVALID` · `IDEMPOTENCY_KEY_INVALID` ·
`IDEMPOTENCY_KEY_REUSED` the key was given with another request before ·
`MAX_CONCURRENCY_INVALID` · `FLEET_FAILED` a process of the fleet can't be kept alive ·
`ENGINE_FAILED` a detached engine ended before it admitted its run.
"""

from __future__ import annotations

from typing import Final

from smithers.workflow.errors import SmithersError

RUN_ID_INVALID: Final = "RUN_ID_INVALID"
RUN_ID_MISSING: Final = "RUN_ID_MISSING"
RUN_EXISTS: Final = "RUN_EXISTS"
RUN_INPUT_DIFFERS: Final = "RUN_INPUT_DIFFERS"
RESUME_METADATA_MISMATCH: Final = "RESUME_METADATA_MISMATCH"
RUN_ALREADY_ENDED: Final = "RUN_ALREADY_ENDED"
INPUT_NOT_JSON: Final = "INPUT_NOT_JSON"
DATA_NOT_JSON: Final = "DATA_NOT_JSON"
ANSWER_INVALID: Final = "ANSWER_INVALID"
NODE_UNKNOWN: Final = "NODE_UNKNOWN"
OUTPUT_MISSING: Final = "OUTPUT_MISSING"
SIGNAL_NAME_INVALID: Final = "SIGNAL_NAME_INVALID"
IDEMPOTENCY_KEY_INVALID: Final = "IDEMPOTENCY_KEY_INVALID"
IDEMPOTENCY_KEY_REUSED: Final = "IDEMPOTENCY_KEY_REUSED"
MAX_CONCURRENCY_INVALID: Final = "MAX_CONCURRENCY_INVALID"
FLEET_FAILED: Final = "FLEET_FAILED"
ENGINE_FAILED: Final = "ENGINE_FAILED"


class OperationError(SmithersError):
    """What was asked for is refused; nothing was written."""
