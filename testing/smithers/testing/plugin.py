"""A pytest plugin: a test that fails prints the runs that it made, with trees and states.

pytest_plugins = ["smithers.testing.plugin"]  # in the conftest.py of your tests
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from smithers.testing.run import RECENT


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:  # noqa: ARG001  the hook's signature
    """Forget the runs of the test before."""
    RECENT.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the runs of a test that failed to its report."""
    report = yield
    if call.when == "call" and report.failed:
        runs = [run for reference in RECENT if (run := reference()) is not None]
        report.sections += [("smithers", run.explain()) for run in runs]
    return report
