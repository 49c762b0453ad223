"""What authors import: nodes, `@workflow`, `Ctx`. The pure core that follows from it is beside."""

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
