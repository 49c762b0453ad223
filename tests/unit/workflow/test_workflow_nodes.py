"""What constructors accept, and what they say about the rest."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from pydantic import BaseModel

import smithers.workflow
from smithers.workflow import (
    AgentSpec,
    Approval,
    Branch,
    Loop,
    NoInput,
    Parallel,
    Sequence,
    Task,
    Timer,
    WaitForEvent,
    workflow,
)
from smithers.workflow.errors import AuthorError
from smithers.workflow.tasks import DEFAULT_POLICY
from support.workflow_samples import Out, task, work

# The type checkers would refuse most of these, too.
LooseTask: Any = Task
LooseLoop: Any = Loop
LooseParallel: Any = Parallel
LooseTimer: Any = Timer
LooseSequence: Any = Sequence
LooseWorkflow: Any = workflow
claude = AgentSpec("claude")

REFUSED: dict[str, tuple[Callable[[], object], str, str]] = {
    "no work": (lambda: LooseTask("a", Out), "INVALID_NODE", "Task 'a' takes exactly one of"),
    "two kinds": (lambda: LooseTask("a", Out, run=work, value=Out()), "INVALID_NODE", "exactly"),
    "no prompt": (lambda: LooseTask("a", Out, agent=claude), "INVALID_NODE", "prompt="),
    "prompt alone": (lambda: LooseTask("a", Out, run=work, prompt="x"), "INVALID_NODE", "prompt="),
    "prompt": (lambda: LooseTask("a", Out, agent=claude, prompt=7), "INVALID_NODE", "prompt="),
    "agent": (lambda: LooseTask("a", Out, agent="x", prompt="x"), "INVALID_VALUE", "'x'"),
    "no agents": (lambda: LooseTask("a", Out, agent=[], prompt="x"), "INVALID_VALUE", "agent="),
    "model": (lambda: LooseTask("a", dict, run=work), "INVALID_MODEL", "Task 'a' takes a pydantic"),
    "value": (lambda: LooseTask("a", Out, value=NoInput()), "INVALID_VALUE", "not a Out"),
    "args alone": (lambda: LooseTask("a", Out, value=Out(), args={"x": 1}), "INVALID_NODE", "args"),
    "args": (lambda: task_with(args={"x": object()}), "INVALID_VALUE", "args of Task 'a'"),
    "meta": (lambda: task_with(meta={"x": object()}), "INVALID_VALUE", "meta of Task 'a'"),
    "needs": (lambda: task_with(needs={"x": "b"}), "INVALID_NODE", "'x' is a str"),
    "depends on": (lambda: task_with(depends_on=[Sequence()]), "INVALID_NODE", "no id"),
    "keyword": (lambda: task_with(retry=1), "INVALID_NODE", "no keyword 'retry'"),
    "retries": (lambda: task_with(retries=-1), "INVALID_VALUE", "retries of Task 'a' is -1"),
    "timeout": (lambda: task_with(timeout=-1), "INVALID_VALUE", "timeout of Task 'a'"),
    "queue": (lambda: task_with(queue=""), "INVALID_VALUE", "queue of Task 'a'"),
    "priority": (lambda: task_with(priority=1.5), "INVALID_VALUE", "priority of Task 'a'"),
    "cap": (lambda: LooseParallel(max_concurrency=0), "INVALID_VALUE", "max_concurrency"),
    "no passes": (lambda: LooseLoop("l", until=1, max_iterations=0), "INVALID_VALUE", "Loop 'l'"),
    "on max": (lambda: LooseLoop("l", until=True, on_max="x"), "INVALID_VALUE", "on_max"),
    "no duration": (lambda: LooseTimer("t"), "INVALID_NODE", "Timer 't' takes either"),
    "naive": (lambda: LooseTimer("t", until=datetime(2030, 1, 1)), "INVALID_VALUE", "no time zone"),  # noqa: DTZ001
    "text child": (
        lambda: LooseSequence(None, "x"),
        "INVALID_NODE",
        "child 1 of Sequence is a str",
    ),
    "true child": (lambda: LooseSequence(True), "INVALID_NODE", "child 0 of Sequence is a bool"),
    "model child": (lambda: LooseSequence(Out()), "INVALID_NODE", "is a Out, which isn't a node"),
    "inner child": (
        lambda: LooseSequence([None, 3]),
        "INVALID_NODE",
        "child 1 of Sequence is a int",
    ),
    "input": (lambda: LooseWorkflow(input=dict), "INVALID_MODEL", "pydantic model"),
    "options": (lambda: AgentSpec("x", options={"a": object()}), "INVALID_VALUE", "agent 'x'"),
}


def task_with(**options: Any) -> object:
    return LooseTask("a", Out, run=work, **options)


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_refused_with_the_node_named(name: str) -> None:
    make, code, words = REFUSED[name]
    with pytest.raises(AuthorError) as caught:
        make()
    assert caught.value.code == code
    assert words in caught.value.message


def test_falsy_children_are_dropped_and_keep_their_places() -> None:
    a, b = task("a"), task("b")
    falsy: Any = ("", 0)
    node = Sequence(None, a, False, *falsy, [None, b], (each for each in [None]))
    assert node.children == (a, b)
    assert node.places == (1, 6)


def test_a_branch_mounts_one_side() -> None:
    assert Branch(True, task("a"), task("b")).children == (task("a"),)
    assert Branch(None, task("a"), task("b")).children == (task("b"),)
    assert Branch(False, task("a")).children == ()


def test_nodes_compare_by_value() -> None:
    assert task("a", retries=1) == task("a", retries=1)
    assert task("a") != task("a", retries=1)
    assert hash(task("a")) == hash(task("a"))
    assert Sequence(task("a"), Loop("l", Approval("b"), until=True)) == Sequence(
        task("a"), Loop("l", Approval("b"), until=True)
    )
    assert len({Sequence(task("a")), Sequence(task("a"))}) == 1


def test_nodes_are_frozen() -> None:
    node: Any = task("a")
    with pytest.raises(AttributeError):
        node.id = "b"


def test_tasks_without_options_share_a_policy() -> None:
    assert task("a").policy is task("b", label="x").policy is DEFAULT_POLICY
    assert task("a", timeout=60).policy.timeout == 60.0


def test_arguments_are_copied_as_json() -> None:
    given = {"paths": ["a"], "when": datetime(2030, 1, 1, 0, 0, 0)}  # noqa: DTZ001
    node = Task("a", Out, run=work, args=given)
    given["paths"] = []
    assert node.args == {"paths": ["a"], "when": "2030-01-01T00:00:00"}


def test_an_event_is_named_as_its_wait_unless_it_says_so() -> None:
    assert WaitForEvent("a").name == "a"
    assert WaitForEvent("a", name="b").name == "b"


def test_a_node_knows_where_it_was_written() -> None:
    assert Sequence().site[0] == __file__


def test_the_public_names_are_sorted_and_there() -> None:
    names = smithers.workflow.__all__
    assert sorted(names) == names
    assert all(hasattr(smithers.workflow, name) for name in names)


def test_an_async_workflow_is_refused() -> None:
    async def flow(ctx: object) -> None:
        """Wait for nothing."""

    with pytest.raises(AuthorError, match="not an async one"):
        LooseWorkflow()(flow)


class Model(BaseModel):
    x: int


def test_a_workflow_is_named_as_its_function_and_found_in_its_module() -> None:
    @workflow(input=Model, include=["a.txt"])
    def named(ctx: object) -> None:
        """Say what it does."""

    assert (named.name, named.include, named.input) == ("named", ("a.txt",), Model)
    assert (named.__module__, named.__doc__) == (__name__, "Say what it does.")
