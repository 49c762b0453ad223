"""Run a workflow in a test: scripted agents, a fake clock, no database, no processes.

run = run_workflow(fix, Ticket(title="x"), agents={"plan": Plan(files=["a"])}, approve=True)
assert run.status == "finished"
"""

from smithers.testing.bodies import Call
from smithers.testing.errors import HarnessError
from smithers.testing.run import TestRun, run_workflow, start_workflow
from smithers.workflow.attempts import AttemptError

__all__ = ["AttemptError", "Call", "HarnessError", "TestRun", "run_workflow", "start_workflow"]
