"""What can go wrong when a user's workflow is loaded or rendered, and how it travels as JSON.

`RENDER_FAILED` it raised, exited or killed its process · `RENDER_TIMEOUT` it didn't end in time ·
`RENDER_OUT_OF_MEMORY` it asked for more memory than a render may have. The codes of
`smithers.bundle.errors` (import and lookup) and of the pure core pass through unchanged.
"""

from __future__ import annotations

import signal
from typing import Final

from smithers.sql.rows import Json
from smithers.workflow.errors import RENDER_FAILED, RENDER_TIMEOUT, RenderError

RENDER_OUT_OF_MEMORY: Final = "RENDER_OUT_OF_MEMORY"


class RendererKilled(RenderError):
    """Something outside (the kernel, an operator) killed the renderer: the run may be innocent."""


def error_from(document: Json) -> RenderError:
    """Return the error that a renderer answered with."""
    return RenderError(
        str(document["code"]),
        str(document["message"]),
        details=document["details"],
        hint=document["hint"],
    )


def ended(status: int | None, *, output: str) -> RenderError:
    """Return the error for a renderer that ended by itself; `status` as `Child.poll` gives it."""
    if status is None:
        how = "closed its channel"
    elif status < 0:
        how = f"was ended by {_signal_name(-status)}"
    else:
        how = f"exited with code {status}"
    kind = RendererKilled if status == -signal.SIGKILL else RenderError
    return kind(
        RENDER_FAILED,
        f"the workflow's process {how} while it was rendering",
        details={"status": status, "output": output},
        hint="a workflow function only returns nodes; let tasks do the work",
    )


def timed_out(seconds: float, *, where: str, output: str) -> RenderError:
    """Return the error for a render that didn't end; `where` is `path:line`, or ""."""
    place = f" ({where})" if where else ""
    return RenderError(
        RENDER_TIMEOUT,
        f"the workflow didn't render within {seconds:g} s{place}",
        details={"seconds": seconds, "where": where, "output": output},
        hint="a workflow function only returns nodes; let tasks do the work",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
