"""Render: call the workflow with the facts of its run, and extract the tree."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from pydantic import BaseModel

from smithers.workflow.containers import Sequence
from smithers.workflow.context import Ctx
from smithers.workflow.definition import Workflow
from smithers.workflow.errors import RENDER_FAILED, RenderError, SmithersError
from smithers.workflow.extract import extract
from smithers.workflow.facts import Facts
from smithers.workflow.nodes import Child, Node, children_of
from smithers.workflow.tree import Tree


@dataclass(frozen=True, slots=True)
class Rendering:
    """A tree; it is `stable` if what was read for it was read in the passes that it mounts."""

    tree: Tree
    stable: bool


def render(workflow: Workflow, facts: Facts, run_input: BaseModel) -> Rendering:
    """Call a workflow once and check what it returns.

    Raises RenderError (RENDER_FAILED with the traceback; RUN_TOO_LARGE); AuthorError, ReadError
    and MemoryError as they were raised in it.
    """
    ctx = Ctx(run_input, facts)
    try:
        root = _root(workflow.name, workflow(ctx))
    except (SmithersError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise _failed(workflow, error) from error
    tree = extract(root, facts)
    return Rendering(tree, not ctx.asked_elsewhere({**facts.chains, **tree.chains}))


def _root(name: str, returned: Child) -> Node:
    nodes, _ = children_of(f"workflow {name!r}", [returned])
    return nodes[0] if isinstance(returned, Node) else Sequence(*nodes)


def _failed(workflow: Workflow, error: BaseException) -> RenderError:
    last = traceback.format_exception_only(error)[-1].strip()
    calls = traceback.extract_tb(error.__traceback__)
    place = calls[-1] if calls else None
    return RenderError(
        RENDER_FAILED,
        f"workflow {workflow.name!r} raised while it rendered: {last}",
        details={
            "type": type(error).__name__,
            "file": place and place.filename,
            "line": place and place.lineno,
            "traceback": "".join(traceback.format_exception(error)),
        },
        hint="Outputs that aren't there yet are None: check before you use them.",
    )
