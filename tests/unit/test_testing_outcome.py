"""The rules that smithers.testing shares with the worker are the worker's."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel, Field, field_serializer

from smithers.sql.rows import ClaimedTask
from smithers.testing import AttemptError
from smithers.testing.outcome import output_fields, retry_delay
from smithers.testing.stored import stored_output
from smithers.worker import outcome, result
from smithers.workflow import RetryPolicy


class Out(BaseModel):
    text: str = ""
    number: float = 0.0
    whole: int = 0
    loose: Any = None
    hidden: str = Field(default="", exclude=True)
    alias: str = Field(default="", alias="other")


class More(Out):
    extra: int = 1


class Odd(BaseModel):
    value: int = 0

    @field_serializer("value")
    def show(self, value: int) -> object:
        return {1: float("inf"), 2: object(), 3: "text"}.get(value, value)


VALUES: list[BaseModel | object] = [
    Out(text="fine", number=1e300, whole=2**70, loose={"a": [1, {"b": None}]}),
    Out(text="a\0b\ud800c\uffff"),
    Out(number=float("nan")),
    Out(loose=[{"deep": float("-inf")}]),
    Out(loose=object()),
    Out(loose={1, 2}),
    Out.model_construct(text="x", number="not a number", whole=1),
    Out.model_construct(text="x", whole=3.0),
    Out(text="x" * (17 * 1024 * 1024)),
    More(extra=2),
    Odd(value=0),
    Odd(value=1),
    Odd(value=2),
    Odd(value=3),
    None,
    {"text": "no model"},
]


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_outputs_are_judged_alike(number: int, tmp_path: Path) -> None:
    value = VALUES[number]
    model = Odd if isinstance(value, Odd) else Out
    try:
        theirs: object = json.loads(result.encode_output(value, model, tmp_path / "spill"))
    except AttemptError as error:
        theirs = error.code
    try:
        ours: object = output_fields(value, model)
    except AttemptError as error:
        ours = error.code
    if isinstance(ours, dict) and "\0" in str(ours.get("text")):
        assert isinstance(theirs, dict), "strings survive; the codec has a test of its own"
    else:
        assert ours == theirs


def claimed(descriptor: dict[str, Any], failures: int) -> ClaimedTask:
    return ClaimedTask(
        run_id="r", node_id="n", iteration=0, attempt=failures + 1, claim_id=uuid4(),
        queue="default", source_hash="", failures=failures, waited_ms=0.0,
        descriptor=descriptor, needs=None,
    )  # fmt: skip


@pytest.mark.parametrize("failures", range(6))
@pytest.mark.parametrize("code", ["TASK_RAISED", "OUTPUT_TOO_LARGE", "MY_OWN"])
def test_retries_are_due_alike(failures: int, code: str) -> None:
    for policy in (RetryPolicy(jitter="none"), RetryPolicy(5, 60, 3, "none")):
        descriptor = {"retries": 3, "retry": policy.to_json()}
        theirs = outcome.retry_delay(claimed(descriptor, failures), code)
        assert retry_delay(descriptor, failures + 1, code) == theirs


def test_a_moment_loses_its_zone_and_one_that_is_none_is_refused() -> None:
    columns = [{"name": "at", "type": "datetime"}, {"name": "note", "type": "str"}]
    stored = stored_output({"at": "2026-05-01T16:00:00+02:00", "gone": 1}, columns)
    assert stored == {"at": "2026-05-01T14:00:00+00:00"}
    assert datetime.fromisoformat(stored["at"]).tzinfo is not None
    with pytest.raises(AttemptError) as error:
        stored_output({"at": "teatime"}, columns)
    assert error.value.code == "OUTPUT_NOT_STORABLE"
