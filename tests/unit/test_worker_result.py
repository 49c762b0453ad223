"""Any value that a model takes is stored as it is, or refused with a typed error."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from smithers.sql import codec
from smithers.worker.result import encode_output
from smithers.workflow.attempts import AttemptError, validated


class Model(BaseModel):
    text: str = ""
    number: float = 0.0
    whole: int = 0
    anything: Any = None
    aliased: list[str] = Field(default=[], alias="other")


class More(Model):
    extra: str = "x"


NOWHERE = Path("/nowhere")
ANY_TEXT = st.text(st.characters(codec=None))
ANYTHING = st.recursive(
    st.none() | st.booleans() | ANY_TEXT | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


def holds_no_number(value: object) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(holds_no_number, value.values()))
    return isinstance(value, list) and any(map(holds_no_number, value))


def attempted(value: object) -> tuple[bytes, AttemptError | None]:
    try:
        return encode_output(value, Model, NOWHERE), None
    except AttemptError as error:
        return b"", error


def refused(value: object, model: type[BaseModel] = Model) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        encode_output(value, model, NOWHERE)
    return caught.value


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(text=ANY_TEXT, number=st.floats(), whole=st.integers(), anything=ANYTHING)
def test_a_value_comes_back_equal_or_is_refused(
    text: str, number: float, whole: int, anything: object
) -> None:
    value = Model(text=text, number=number, whole=whole, anything=anything)
    encoded, error = attempted(value)
    if error is not None:
        assert error.code == "OUTPUT_NOT_SERIALISABLE"
        assert holds_no_number([number, anything]) or "surrogates" in error.message
        return
    assert b"\\u0000" not in encoded
    stored = codec.loads(encoded)
    assert (stored["text"], stored["whole"], stored["anything"]) == (text, whole, anything)
    assert math.isclose(stored["number"], number, rel_tol=0)


def test_fields_are_stored_by_name_and_a_subclass_without_its_own() -> None:
    stored = json.loads(encode_output(More(other=["a"]), Model, NOWHERE))
    assert set(stored) == {"text", "number", "whole", "anything", "aliased"}
    assert stored["aliased"] == ["a"]


@pytest.mark.parametrize("value", [None, "text", {"text": "a dict"}, [1], Model])
def test_only_an_instance_of_the_model_is_an_output(value: object) -> None:
    assert refused(value).code == "OUTPUT_INVALID"


def test_an_instance_that_was_broken_behind_the_models_back_is_refused() -> None:
    error = refused(Model.model_construct(whole="many"))
    assert error.code == "OUTPUT_INVALID"
    assert error.details["problems"][0]["field"] == "whole"


def test_a_cycle_and_an_integer_beyond_words_are_refused() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    assert refused(Model(anything=cycle)).code == "OUTPUT_NOT_SERIALISABLE"
    assert refused(Model(whole=10**5000)).code == "OUTPUT_NOT_SERIALISABLE"


def test_a_large_output_is_left_on_disk(tmp_path: Path) -> None:
    spill = tmp_path / "deep" / "out.json"
    with pytest.raises(AttemptError) as caught:
        encode_output(Model(text="x" * (17 << 20)), Model, spill)
    assert caught.value.code == "OUTPUT_TOO_LARGE"
    assert caught.value.details["path"] == str(spill)
    assert len(json.loads(spill.read_text())["text"]) == 17 << 20


def test_an_agents_answer_is_validated() -> None:
    assert validated({"text": "a", "aliased": ["b"]}, Model) == Model(text="a", other=["b"])
    with pytest.raises(AttemptError, match="whole"):
        validated({"whole": "many"}, Model)
