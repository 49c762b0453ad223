"""What is written about an attempt's end: retries, releases, errors that fit, outputs as bytes."""

from __future__ import annotations

import json
import math

import pytest

from smithers.worker.outcome import (
    Cancelled,
    Failed,
    Finished,
    Released,
    complete_item,
    end_item,
    error_json,
    outcome_of,
    release_delay,
    retry_delay,
)
from smithers.workflow.attempts import AttemptError
from support.attempts import descriptor, task

RETRY = {"initial": 2.0, "maximum": 10.0, "multiplier": 2.0, "jitter": "none"}


@pytest.mark.parametrize(
    ("failures", "delay"), [(0, 2.0), (1, 4.0), (2, 8.0), (3, 10.0), (4, None)]
)
def test_the_retries_of_the_task_are_counted_by_failures(
    failures: int, delay: float | None
) -> None:
    failing = task(descriptor("say", retries=4, retry=RETRY), failures=failures, attempt=9)
    assert retry_delay(failing, "TASK_RAISED") == delay


def test_jitter_draws_between_nothing_and_the_ceiling() -> None:
    failing = task(descriptor("say", retries=4, retry={**RETRY, "jitter": "full"}), failures=1)
    delays = [retry_delay(failing, "TASK_RAISED") for _ in range(50)]
    assert all(delay is not None and 0 <= delay <= 4 for delay in delays)
    assert len(set(delays)) > 1


@pytest.mark.parametrize("code", ["OUTPUT_TOO_LARGE", "LOG_OVERFLOW", "TASK_NOT_IMPORTABLE"])
def test_what_would_only_repeat_is_final(code: str) -> None:
    failed = outcome_of(AttemptError(code, "no"), task(descriptor("say", retries=4, retry=RETRY)))
    assert isinstance(failed, Failed)
    assert end_item(task(descriptor("say", retries=4, retry=RETRY)), failed)["retry_in"] is None


def test_the_workers_own_fault_is_released_ever_later() -> None:
    body = descriptor("say")
    released = outcome_of(AttemptError("ENVIRONMENT_MISSING", "no numpy"), task(body))
    assert isinstance(released, Released)
    item = end_item(task(body), released)
    assert item["state"] == "released"
    assert item["retry_in"] == 5.0
    # Two failures and three releases came before.
    assert release_delay(task(body, attempt=6, failures=2)) == 40.0
    assert release_delay(task(body, attempt=99)) == 300.0


def test_an_item_carries_the_token_and_the_output_as_it_came() -> None:
    done = task(descriptor("say"), node_id="n\ud800", attempt=3)
    text = complete_item(done, Finished(b'{"text":"a"}', 0.25))
    item = json.loads(text)
    assert item["output"] == {"text": "a"}
    assert item["claim_id"] == str(done.claim_id)
    assert (item["name"], item["shape"], item["attempt"]) == ("out", "0" * 64, 3)
    assert item["node_id"] == "n\uffffd800"
    assert end_item(done, Cancelled())["state"] == "cancelled"


def test_an_error_names_its_node_and_fits() -> None:
    failing = task(descriptor("say"), node_id="culprit", iteration=2)
    short = error_json(AttemptError("TASK_RAISED", "no", {"line": 3}), failing, "x" * 100_000)
    assert short["details"]["node_id"] == "culprit"
    assert short["details"]["line"] == 3
    assert len(short["details"]["output_tail"]) == 8_000
    for details in ({"huge": "x" * 1_000_000}, {"odd": math.nan}):
        bounded = error_json(AttemptError("TASK_RAISED", "y" * 50_000, details), failing)
        assert bounded["details"] == {"node_id": "culprit", "iteration": 2, "truncated": True}
        assert len(bounded["message"]) == 8_000
