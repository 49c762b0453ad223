"""An earlier version of a model reads rows of a table that a later one has widened."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from smithers.workflow.models import load


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str
    note: str | None


def test_a_null_of_a_field_that_came_later_is_passed_over() -> None:
    assert load(Strict, {"title": "a", "note": None, "later": None}) == Strict(title="a", note=None)


def test_a_value_of_a_field_that_is_not_known_is_still_refused() -> None:
    with pytest.raises(ValidationError):
        load(Strict, {"title": "a", "note": None, "later": 1})
