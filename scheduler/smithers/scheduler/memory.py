"""Which structure a renderer child remembers of a run, so that a frame can be stored as a delta."""

from __future__ import annotations

from dataclasses import asdict

from smithers.scheduler.renderer import Renderer
from smithers.sql.calls import Connection
from smithers.sql.rows import Json
from smithers.sql.scheduler import load_frames


class RunRenderer:
    """A renderer that is told the last stored structure of a run only when it can't know it.

    It can when its own last frame of the run was committed and nobody else has committed one since.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._committed: dict[str, int] = {}

    def render(self, snapshot: Json, connection: Connection) -> Json:
        """Return the next frame of the run in `snapshot`. Raises as `Renderer.render`."""
        run = snapshot["run"]
        run_id, frame_no = run["run_id"], run["frame_no"]
        if frame_no and self._committed.get(run_id) == frame_no:
            frame = self._renderer.render(run["workflow"], snapshot, frames=None)
            if frame is not None:
                return frame
        self.forget(run_id)
        bodies = load_frames(connection, run_id) if frame_no else []
        frame = self._renderer.render(
            run["workflow"], snapshot, frames=[asdict(body) for body in bodies]
        )
        assert frame is not None
        return frame

    def committed(self, run_id: str, frame_no: int) -> None:
        """The frame that was rendered last is stored under this number."""
        self._committed[run_id] = frame_no

    def forget(self, run_id: str) -> None:
        """Nothing is known any more about what is stored of this run."""
        self._committed.pop(run_id, None)

    def abort(self) -> None:
        """Kill the child under a render, from another thread."""
        self._renderer.abort()

    def close(self) -> None:
        """End the child."""
        self._renderer.close()
