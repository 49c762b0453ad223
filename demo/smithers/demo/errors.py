"""What the demo refuses: each leaves everything as it was.

`DEMO_NOT_ALONE` processes serve the database already · `DEMO_REPOSITORY_INVALID` the folder
given is none · `DEMO_FAILED` a command of the demo ended otherwise than it should · `GIT_MISSING`
"""

from __future__ import annotations

from typing import Final

from smithers.workflow.errors import SmithersError

DEMO_NOT_ALONE: Final = "DEMO_NOT_ALONE"
DEMO_REPOSITORY_INVALID: Final = "DEMO_REPOSITORY_INVALID"
DEMO_FAILED: Final = "DEMO_FAILED"
GIT_MISSING: Final = "GIT_MISSING"


class DemoError(SmithersError):
    """The demo can't be shown."""
