"""The answer of an agent is the last JSON object that it prints."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smithers.agents.answer import last_object


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("no object", None),
        ("{broken", None),
        ("[1, 2]", None),
        ('{"a": 1}', {"a": 1}),
        ('{"a": {"b": {}}}\nthanks', {"a": {"b": {}}}),
        ('first {"a": 1} then {"b": 2} and { not json', {"b": 2}),
        ('```json\n{"code": "if (x) { y }"}\n```', {"code": "if (x) { y }"}),
        ('{"a": 1}{"b": {"c": 2}}', {"b": {"c": 2}}),
    ],
)
def test_the_last_object_whatever_stands_around_it(text: str, expected: object) -> None:
    assert last_object(text) == expected


TEXT = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_any_object_is_found_after_any_other(first: object, last: object) -> None:
    assert last_object(f"{json.dumps(first)}\nwords\n{json.dumps(last)}\n") == last


def test_a_flood_of_braces_ends_soon() -> None:
    assert last_object("{" * 200_000) is None
    assert last_object('{"a":' * 20_000) is None
    assert last_object('{"a": None}\n' * 100_000 + '{"b": 1}') == {"b": 1}
    assert last_object('{"a": "' * 3_000 + '{"b": 1}') == {"b": 1}
