"""Backoff as arithmetic."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smithers.workflow.errors import AuthorError
from smithers.workflow.retry import RetryPolicy, may_retry


def test_the_ceiling_doubles_up_to_the_maximum() -> None:
    policy = RetryPolicy(initial=1, maximum=10)
    assert [policy.ceiling(n) for n in range(7)] == [0, 1, 2, 4, 8, 10, 10]
    assert policy.ceiling(10**9) == 10


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_full_jitter_stays_below_the_ceiling(failures: int, chance: float) -> None:
    policy = RetryPolicy()
    assert timedelta() <= policy.delay(failures, chance) <= timedelta(seconds=300)
    assert RetryPolicy(jitter="none").delay(failures, chance).total_seconds() == policy.ceiling(
        failures
    )


def test_a_policy_comes_back_from_its_descriptor() -> None:
    policy = RetryPolicy(2, 60, 3, "none")
    assert RetryPolicy.from_json(policy.to_json()) == policy
    with pytest.raises(AuthorError):
        RetryPolicy.from_json({"initial": "x"})


@pytest.mark.parametrize(
    "figures",
    [(-1.0, 1.0, 2.0), (1.0, float("inf"), 2.0), (1.0, 1.0, 0.5), (float("nan"), 1.0, 2.0)],
)
def test_figures_that_make_no_schedule_are_refused(figures: tuple[float, float, float]) -> None:
    with pytest.raises(AuthorError, match="is no schedule"):
        RetryPolicy(*figures)


def test_retries_count_tries_after_the_first() -> None:
    assert [may_retry(failures, 2) for failures in (1, 2, 3)] == [True, True, False]
