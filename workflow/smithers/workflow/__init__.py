"""What authors import: nodes, `@workflow`, `Ctx`. The pure core that follows from it is beside.

The names are imported when they are first used: commands that only look at rows need none.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smithers.workflow.agent import AgentSpec
    from smithers.workflow.containers import Branch, Loop, Parallel, Sequence
    from smithers.workflow.context import Ctx
    from smithers.workflow.definition import Workflow, workflow
    from smithers.workflow.models import Decision, Event, Fired, NoInput
    from smithers.workflow.nodes import Child, Node, Ref
    from smithers.workflow.retry import RetryPolicy
    from smithers.workflow.tasks import Task
    from smithers.workflow.waits import Approval, HumanTask, Timer, WaitForEvent

__all__ = [
    "AgentSpec",
    "Approval",
    "Branch",
    "Child",
    "Ctx",
    "Decision",
    "Event",
    "Fired",
    "HumanTask",
    "Loop",
    "NoInput",
    "Node",
    "Parallel",
    "Ref",
    "RetryPolicy",
    "Sequence",
    "Task",
    "Timer",
    "WaitForEvent",
    "Workflow",
    "workflow",
]

_MODULES = {
    "agent": ["AgentSpec"],
    "containers": ["Branch", "Loop", "Parallel", "Sequence"],
    "context": ["Ctx"],
    "definition": ["Workflow", "workflow"],
    "models": ["Decision", "Event", "Fired", "NoInput"],
    "nodes": ["Child", "Node", "Ref"],
    "retry": ["RetryPolicy"],
    "tasks": ["Task"],
    "waits": ["Approval", "HumanTask", "Timer", "WaitForEvent"],
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
