"""A resume by command: the input stays, whatever the file has become."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fleet import fleet

WORKFLOW = """
from pydantic import BaseModel, Field
from smithers.workflow import Approval, Ctx, Node, workflow


class Order(BaseModel):
    number: int = Field(alias="no")
    note: str = "none"


@workflow(input=Order)
def order(ctx: Ctx[Order]) -> Node:
    return Approval("gate", title=f"{ctx.input.number}: {ctx.input.note}")
"""


@pytest.mark.slow
def test_the_input_of_a_run_is_kept_by_every_way_on(database: str, tmp_path: Path) -> None:
    file = tmp_path / "order.py"
    file.write_text(WORKFLOW)
    with fleet(database, tmp_path, lease=3.0) as whole:
        started = whole.cli("up", "order.py", "--run-id", "r1", "--input", '{"no": 7}')
        assert started.returncode == 3, started.stderr
        resume = ("up", "order.py", "--run-id", "r1", "--resume")
        same = ("--input", '{"no": 7}')
        other = ("--input", '{"no": 8}')
        assert whole.cli(*resume, *same).returncode == 3, "a default that is left out is the same"
        assert "error[RUN_INPUT_DIFFERS]" in whole.cli(*resume, *other).stderr
        file.write_text(f"{WORKFLOW}\n# changed\n")
        assert "error[RESUME_METADATA_MISMATCH]" in whole.cli(*resume).stderr
        assert whole.cli(*resume, "--pinned", *same).returncode == 3
        assert "error[RUN_INPUT_DIFFERS]" in whole.cli(*resume, "--pinned", *other).stderr
        accepted = whole.cli(*resume, "--accept-workflow-change")
        assert accepted.returncode == 3, accepted.stderr
        assert whole.cli(*resume).returncode == 3, "the changed file is the run's own now"
        file.write_text(WORKFLOW.replace("number: int", "number: str"))
        refused = whole.cli(*resume, "--accept-workflow-change")
        assert "error[INPUT_INVALID]" in refused.stderr
