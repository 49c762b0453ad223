"""Trees that are refused, each with its own error."""

from __future__ import annotations

from functools import partial
from typing import cast

import pytest
from pydantic import BaseModel

from smithers.workflow import (
    Child,
    Ctx,
    Loop,
    Node,
    NoInput,
    Parallel,
    Sequence,
    Task,
    workflow,
)
from smithers.workflow.errors import SmithersError
from support.workflow_samples import Out, flow, other, task
from support.workflow_world import World


def refuse(*children: Child) -> SmithersError:
    with pytest.raises(SmithersError) as caught:
        World(flow(*children)).frame()
    return caught.value


def test_duplicate_ids_are_refused_with_both_places() -> None:
    error = refuse(task("é"), Parallel(None, task("e\u0301")))
    assert error.code == "DUPLICATE_ID"
    first, second = cast("list[str]", error.details["places"])
    assert "Task at 0.0 (" in first
    assert "Task at 0.1.1 (" in second
    assert "workflow_samples.py:" in first  # where the helper makes it


def test_a_loop_and_a_task_may_not_share_an_id() -> None:
    assert refuse(task("a"), Loop("a", task("b"), until=True)).code == "DUPLICATE_ID"


def test_functions_that_no_worker_can_find_are_refused() -> None:
    def local() -> Out:
        return Out()

    for run in (local, lambda: local(), partial(local)):  # noqa: PLW0108
        error = refuse(Task("a", Out, run=run))
        assert error.code == "TASK_NOT_IMPORTABLE"
        assert "'a'" in error.message


def test_a_partial_is_named_with_what_it_binds() -> None:
    world = World(flow(Task("a", Out, run=partial(other, n=3))))
    world.frame()
    (body,) = world.descriptors.values()
    assert body["run"].endswith(":other")
    assert body["partial"] == {"args": [], "kwargs": {"n": 3}}


def test_models_that_no_worker_can_find_are_refused() -> None:
    class Local(BaseModel):
        x: int

    def local() -> Local:
        return Local(x=1)

    assert refuse(Task("a", Local, value=local())).code == "INVALID_MODEL"


def test_ids_that_change_from_render_to_render_are_refused() -> None:
    counter = iter(range(100))

    @workflow(name="random")
    def random(ctx: Ctx[NoInput]) -> Node:
        return task(f"t{next(counter)}")

    with pytest.raises(SmithersError, match="'t0', 't1' differ") as caught:
        World(random).frame()
    assert caught.value.code == "RENDER_UNSETTLED"


def test_a_loop_that_never_settles_is_refused() -> None:
    s = Task("s", Out, value=Out())
    error = refuse(Loop("l", s, until=False, max_iterations=10**6))
    assert error.code == "RENDER_UNSETTLED"


def test_a_render_that_raises_tells_where() -> None:
    @workflow(name="broken")
    def broken(ctx: Ctx[NoInput]) -> Node:
        raise ZeroDivisionError("oh")

    with pytest.raises(SmithersError) as caught:
        World(broken).frame()
    assert caught.value.code == "RENDER_FAILED"
    assert "ZeroDivisionError: oh" in caught.value.message
    assert "test_workflow_refusals.py" in str(caught.value.details["traceback"])


def test_an_empty_workflow_is_finished_at_once() -> None:
    @workflow(name="none")
    def none(ctx: Ctx[NoInput]) -> None:
        return None

    world = World(none)
    world.frame()
    assert world.status == "finished"


def test_trees_that_are_too_deep_are_refused() -> None:
    node: Node = task("a")
    for _ in range(150):
        node = Sequence(node)
    assert refuse(node).code == "INVALID_NODE"
