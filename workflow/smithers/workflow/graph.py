"""What `smithers graph` shows: the tree of a run that hasn't begun."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, cast

from smithers.workflow.definition import Workflow
from smithers.workflow.frame import FrameStructure
from smithers.workflow.settle import settle
from smithers.workflow.snapshot import empty

# Nothing is due in a run that hasn't begun.
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


def graph(workflow: Workflow, raw_input: object = None) -> FrameStructure:
    """Render a workflow without any output; raises what `settle` raises."""
    frame = settle(workflow, empty(workflow.name, workflow.admit(raw_input), _NO_TIME))
    assert frame.structure is not None
    return frame.structure


def nested(structure: FrameStructure) -> dict[str, object]:
    """Give a structure as one nested tree, for people and programs that draw it."""

    def node(key: str) -> dict[str, object]:
        entry = structure.nodes[key]
        children = cast("list[str]", entry.get("children", []))
        inner = {"children": [node(child) for child in children]} if "children" in entry else {}
        return {"id": key, **{k: v for k, v in entry.items() if k != "gate"}, **inner}

    return node(structure.root)
