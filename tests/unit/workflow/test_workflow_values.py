"""Shapes, stored values, inputs, and what a render reads."""

from __future__ import annotations

import enum
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Optional

import pytest
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    computed_field,
)

from smithers.workflow import Child, Ctx, Node, NoInput, Sequence, Task, Workflow, workflow
from smithers.workflow.canonical import canonical
from smithers.workflow.errors import AuthorError, InputError, ReadError, SmithersError
from smithers.workflow.models import dump, load
from smithers.workflow.shapes import shape_of, snake
from support.workflow_samples import Answer, Out, flow, task
from support.workflow_world import World


class Colour(enum.Enum):
    RED = "red"


class Everything(BaseModel):
    model_config = ConfigDict(strict=True)

    a: int
    b: float
    c: str
    d: bool
    e: AwareDatetime
    f: int | None
    g: Optional[Annotated[str, Field(max_length=9)]] = None  # noqa: UP045
    h: list[int] = []
    i: datetime | None = None
    j: Colour = Colour.RED
    k: int | str = 1
    l: Any = None  # noqa: E741
    m: Annotated[int, PlainSerializer(str), Field(strict=False)] = 1
    n: frozenset[int] = frozenset({2})
    o: Decimal = Decimal("1.5")
    p: Annotated[int, Field(alias="pAlias")] = 2
    q: tuple[date, bytes] = (date(2030, 1, 1), b"x")

    @computed_field
    def twice(self) -> int:
        """Give what isn't stored."""
        return 2 * self.a


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


EVERYTHING = Everything(
    a=2**70, b=1.5, c="\0\ufffd", d=True, e=datetime(2030, 1, 1, tzinfo=UTC), f=None
)


def test_a_shape_has_a_typed_field_for_each_plain_one() -> None:
    fields = {each.name: (each.type, each.nullable) for each in shape_of(Everything).fields}
    assert fields == {
        "a": ("int", False),
        "b": ("float", False),
        "c": ("str", False),
        "d": ("bool", False),
        "e": ("datetime", False),
        "f": ("int", True),
        "g": ("str", True),
        "h": ("json", False),
        "i": ("json", True),
        "j": ("json", False),
        "k": ("json", False),
        "l": ("json", True),
        "m": ("json", False),
        "n": ("json", False),
        "o": ("json", False),
        "p": ("int", False),
        "q": ("json", False),
    }
    assert [each.name for each in shape_of(Tree).fields] == ["name", "children"]


def test_a_shape_hash_ignores_the_order_of_fields() -> None:
    def model(*names: str) -> type[BaseModel]:
        made = type("Made", (BaseModel,), {"__annotations__": dict.fromkeys(names, int)})
        made.__module__ = __name__
        globals()["Made"] = made
        return made

    hashes = [shape_of(model(*names)).hash for names in (("x", "y"), ("y", "x"), ("x", "z"))]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("Plan", "plan"),
        ("ReviewResult", "review_result"),
        ("HTTPReply", "http_reply"),
        ("V2Plan", "v2_plan"),
        ("_Private", "_private"),
    ],
)
def test_a_model_name_becomes_an_identifier(name: str, stored: str) -> None:
    assert snake(name) == stored


def test_long_and_foreign_names_stay_apart_and_in_bounds() -> None:
    names = [snake("A" * 60), snake("A" * 61), snake("Été"), snake("Ete")]
    assert len(set(names)) == 4
    assert all(len(name) <= 40 and name.isascii() for name in names)


def test_values_come_back_through_json() -> None:
    fields = dump(EVERYTHING)
    assert "twice" not in fields
    assert load(Everything, json.loads(json.dumps(fields))) == EVERYTHING


def test_half_a_surrogate_pair_comes_back() -> None:
    assert load(Answer, {"text": "a\ud800"}).text == "a\ud800"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: {2}}])
def test_what_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(AuthorError) as caught:
        canonical({"x": value}, "this")
    assert caught.value.code == "INVALID_VALUE"


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")


class Root(RootModel[list[int]]):
    pass


class Number(BaseModel):
    x: float


@pytest.mark.parametrize("model", [Loose, Root])
def test_models_without_named_fields_are_refused(model: type[BaseModel]) -> None:
    with pytest.raises(AuthorError) as caught:
        shape_of(model)
    assert caught.value.code == "INVALID_MODEL"


def test_a_static_nan_is_refused_with_its_node_and_place() -> None:
    with pytest.raises(SmithersError, match="Task 's'") as caught:
        World(flow(Task("s", Number, value=Number(x=float("nan"))))).frame()
    assert caught.value.code == "INVALID_VALUE"
    assert "test_workflow_values.py:" in str(caught.value.details["place"])


# ── input ──


class Inner(BaseModel):
    n: int


class In(BaseModel):
    title: str
    inner: Inner = Inner(n=1)


@workflow(input=In)
def with_input(ctx: Ctx[In]) -> Child:
    return Task("a", Out, value=Out(n=ctx.input.inner.n))


def test_an_input_that_does_not_fit_names_each_field() -> None:
    with pytest.raises(InputError) as caught:
        with_input.validate_input({"inner": {"n": "x"}})
    assert caught.value.code == "INPUT_INVALID"
    found: Any = caught.value.details["fields"]
    assert [each["field"] for each in found] == ["title", "inner.n"]
    assert "title: Field required" in caught.value.message


@pytest.mark.parametrize("raw", [[], "x", 3, {"title": object()}])
def test_an_input_of_another_kind_is_refused(raw: object) -> None:
    with pytest.raises(InputError):
        with_input.admit(raw)


def test_an_admitted_input_has_its_defaults() -> None:
    assert with_input.admit({"title": "x"}) == {"title": "x", "inner": {"n": 1}}
    assert with_input.admit(In(title="y"))["title"] == "y"
    world = World(with_input, {"title": "x"})
    world.frame()
    assert world.outputs["a", 0]["n"] == 1


def test_no_input_takes_nothing() -> None:
    assert flow().admit(None) == {}
    with pytest.raises(InputError):
        flow().admit({"x": 1})


# ── reading ──


def reading(read: Any) -> Workflow:
    @workflow(name="reading")
    def reading(ctx: Ctx[NoInput]) -> Node:
        a = task("a")
        read(ctx, a)
        return Sequence(a)

    return reading


@pytest.mark.parametrize(
    ("read", "code"),
    [
        (lambda ctx, a: ctx.output(a), "OUTPUT_MISSING"),
        (lambda ctx, a: ctx.output_maybe("a"), "INVALID_REFERENCE"),
        (lambda ctx, a: ctx.latest(None), "INVALID_REFERENCE"),
        (lambda ctx, a: ctx.outputs(Sequence()), "INVALID_REFERENCE"),
        (lambda ctx, a: ctx.iteration(3), "INVALID_REFERENCE"),
        (lambda ctx, a: ctx.iteration_count(Out), "INVALID_REFERENCE"),
    ],
)
def test_reading_never_fails_silently(read: Any, code: str) -> None:
    with pytest.raises(ReadError) as caught:
        World(reading(read)).frame()
    assert caught.value.code == code


def test_a_missing_output_says_what_its_node_is() -> None:
    world = World(reading(lambda ctx, a: ctx.output(a) if ctx.outputs(a) else None))
    world.frame()
    world.fail("a")
    world.workflow = reading(lambda ctx, a: ctx.output(a))
    with pytest.raises(ReadError, match=r"'a' \(iteration 0\) has no output: it is failed"):
        world.frame()


def test_an_output_of_another_model_is_an_error_that_names_it() -> None:
    world = World(reading(lambda ctx, a: ctx.output_maybe(a)))
    world.frame()
    world.complete("a", n="many")
    with pytest.raises(ReadError, match="doesn't fit Out: n: ") as caught:
        world.frame()
    assert caught.value.code == "OUTPUT_MISMATCH"


def test_passes_can_be_looked_back_upon() -> None:
    from smithers.workflow import Loop

    seen: list[Any] = []

    @workflow(name="look")
    def look(ctx: Ctx[NoInput]) -> Node:
        a = task("a")
        loop = Loop("l", a, until=ctx.iteration("l") == 2)
        last = ctx.latest(a)
        seen.append(
            (
                ctx.iteration("l"),
                ctx.iteration(a),
                ctx.iteration_count(loop),
                ctx.iteration_count(a),
                last.n if last else None,
                [each.n for each in ctx.outputs(a)],
                ctx.output_maybe(a, iteration=0) is not None,
            )
        )
        return loop

    world = World(look)
    world.frame()
    assert seen[-1] == (0, 0, 0, 0, None, [], False)
    for i in range(3):
        world.complete("a", i, n=10 + i)
        world.frame()
    assert seen[-1] == (2, 2, 3, 3, 12, [10, 11, 12], True)
