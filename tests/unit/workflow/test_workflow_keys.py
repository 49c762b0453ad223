"""Ids and keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smithers.workflow.errors import AuthorError
from smithers.workflow.keys import (
    TaskKey,
    author_id,
    check_id,
    check_loop_id,
    loop_key,
    node_key,
    normal,
)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("a\nb", "control character"),
        ("a\0", "control character"),
        ("\ud800", "half a surrogate pair"),
        ("a@@b", "marks loop passes"),
        ("é@@b", "marks loop passes"),
        ("x" * 257, "longer than 256 bytes"),
        ("é" * 129, "longer than 256 bytes"),
        (7, "not int"),
        (None, "not NoneType"),
    ],
)
def test_an_id_that_may_not_be_used_is_refused(value: object, why: str) -> None:
    with pytest.raises(AuthorError, match=why) as caught:
        check_id(value, "Task")
    assert caught.value.code == "INVALID_ID"
    assert caught.value.message.startswith("Task has the id")


@pytest.mark.parametrize("value", ["a", "edit:src/a b.py", "é" * 128, "日本", "a@b", "x" * 256])
def test_other_ids_may_be_used(value: str) -> None:
    assert check_id(value, "Task") == value


def test_a_loop_id_has_no_comma_and_no_equals_sign() -> None:
    for value in ("a,b", "a=b"):
        with pytest.raises(AuthorError, match="',' or '='"):
            check_loop_id(value)


def test_keys_name_all_loops_but_the_innermost() -> None:
    assert node_key("t", ()) == ("t", 0)
    assert node_key("t", (("l", 3),)) == ("t", 3)
    assert node_key("t", (("o", 2), ("m", 0), ("i", 4))) == ("t@@o=2,m=0", 4)
    assert loop_key("i", (("o", 2), ("m", 0)), 4) == ("i@@o=2,m=0", 4)
    assert loop_key("o", (), 2) == ("o", 2)


@given(st.text(min_size=1, max_size=20).filter(lambda text: "@@" not in text))
def test_the_author_id_comes_back(name: str) -> None:
    assert author_id(node_key(name, (("o", 1), ("i", 2)))[0]) == name or name.endswith("@")


def test_equal_looking_ids_are_compared_as_equal() -> None:
    assert normal("e\u0301") == normal("é")


def test_a_task_key_is_ordered() -> None:
    assert min(TaskKey("r", "b", 0), TaskKey("r", "a", 1)).node_key == ("a", 1)
