"""Structures: stored whole, as changes, or not at all; put together again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from smithers.workflow import Ctx, Loop, Node, Parallel, Sequence, Workflow, workflow
from smithers.workflow.errors import SnapshotError
from smithers.workflow.frame import FrameStructure, reconstruct, store
from smithers.workflow.graph import graph, nested
from smithers.workflow.snapshot import FrameRow, Snapshot
from support.workflow_samples import flow, task
from support.workflow_world import World


class Names(BaseModel):
    names: list[str]


def tree_of(names: list[str]) -> FrameStructure:
    @workflow(input=Names, name="tree")
    def tree(ctx: Ctx[Names]) -> Node:
        wide = Parallel(*(task(name) for name in ctx.input.names if name != "z"))
        return Sequence(task("first"), wide, Loop("l", task("last"), until=True))

    made: Workflow = tree
    return graph(made, {"names": names})


lists = st.lists(st.sampled_from("abcdefghz"), unique=True, max_size=9)


@given(st.lists(lists, min_size=1, max_size=12))
@settings(deadline=None, max_examples=150)
def test_frames_reconstruct(versions: list[list[str]]) -> None:
    known: FrameStructure | None = None
    rows: list[FrameRow] = []
    weights: list[int] = []
    for number, names in enumerate(versions, 1):
        now = tree_of(names)
        stored = store(known, now, number)
        if known is not None and now == known:
            assert stored.body is None
        if stored.body is not None:
            if stored.base is None:
                rows, weights = [], []
            rows.append(FrameRow(number, stored.base, stored.body))
            weights.append(len(str(stored.body)))
        known = reconstruct(rows)
        assert known == now == stored.after
        assert known is not None
        assert (known.frame_no, known.full_weight, known.delta_weight) == (
            stored.after.frame_no,
            stored.after.full_weight,
            stored.after.delta_weight,
        )
        assert known.delta_weight < known.full_weight
        assert known.hash == now.hash


def test_a_child_more_is_a_splice() -> None:
    names = [f"n{i:03}" for i in range(50)]
    one = store(None, tree_of(names), 1).after
    other = store(one, tree_of([*names[:40], "new", *names[40:]]), 2)
    assert other.base == 1
    body: Any = other.body
    assert body["splice"] == {"@@0.1": [40, 0, ["new"]]}
    assert set(body["set"]) == {"new"}
    back = store(other.after, one, 3)
    assert back.body == {"splice": {"@@0.1": [40, 1, []]}, "drop": ["new"]}


def test_equal_rows_give_an_equal_hash() -> None:
    def run(reverse: bool) -> str:
        world = World(flow(Parallel(task("a"), task("b")), task("c")), keep=False)
        world.frame()
        world.complete("a")
        document = world.document()
        if reverse:
            document["nodes"] = document["nodes"][::-1]
        from smithers.workflow.settle import settle

        structure = settle(world.workflow, Snapshot.from_json(document)).structure
        assert structure is not None
        return structure.hash

    assert run(reverse=False) == run(reverse=True)


@pytest.mark.parametrize(
    "rows",
    [
        [FrameRow(2, 1, {"set": {}})],
        [FrameRow(1, None, {"root": "a", "nodes": {}}), FrameRow(3, 2, {})],
        [FrameRow(1, None, {"nodes": {}})],
        [FrameRow(1, None, {"root": "a", "nodes": {}}), FrameRow(2, 1, {"drop": ["x"]})],
    ],
)
def test_frames_that_do_not_fit_together_are_an_error(rows: list[FrameRow]) -> None:
    with pytest.raises(SnapshotError):
        reconstruct(rows)


@pytest.mark.parametrize(
    "change",
    [
        {"now": "2030-01-01T00:00:00"},
        {"run": None},
        {"nodes": [["a", 0, "odd", "compute", 0, 0, 0, None, None, False, None]]},
        {"nodes": [["a", 0]]},
        {"nodes": "abc"},
        {"outputs": {"a": {"x": {}}}},
        {"signals": [{"seq": "1", "name": "x"}]},
    ],
)
def test_a_snapshot_that_cannot_be_read_is_an_error(change: dict[str, Any]) -> None:
    world = World(flow(task("a")))
    with pytest.raises(SnapshotError):
        Snapshot.from_json({**world.document(), **change})


def test_outputs_are_read_as_rows_too() -> None:
    world = World(flow(task("a")))
    document = {**world.document(), "outputs": [["a", 0, {"n": 1}]]}
    assert Snapshot.from_json(document).outputs == {("a", 0): {"n": 1}}


def test_a_graph_can_be_nested() -> None:
    picture: Any = nested(graph(flow(task("a"), Parallel(task("b"), max_concurrency=2))))
    assert picture["kind"] == "sequence"
    assert [child["id"] for child in picture["children"]] == ["a", "@@0.1"]
    assert picture["children"][1]["cap"] == 2
    assert picture["children"][1]["children"][0]["id"] == "b"
