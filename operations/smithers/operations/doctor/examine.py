"""Run all checks, side by side where they wait for something."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from smithers.operations.doctor.finding import Check, Finding, State, failed, isolated
from smithers.operations.doctor.looking_database import LATER, examine_database, skipped
from smithers.operations.doctor.looking_host import machine_checks, project_checks
from smithers.operations.doctor.looking_programs import program_checks
from smithers.process.settings import Settings
from smithers.process.settings_values import SettingsError

SECONDS: Final = 30.0
"""What takes longer, as a look at a dead network file system, is given up."""
PROJECT: Final = ("home", "disk", "limits")


def examine(settings: Settings | SettingsError) -> list[Finding]:
    """Check everything, in a fixed order; settings that were refused are a finding too.

    It changes, starts and creates nothing, and never raises: each check's error is its finding.
    """
    pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="doctor")
    try:
        machine = _submit(pool, machine_checks())
        programs = _submit(pool, program_checks())
        if isinstance(settings, SettingsError):
            found = [failed("settings", settings)]
            found += skipped("the settings can't be read", (*PROJECT, "database", *LATER))
        else:
            database = pool.submit(examine_database, settings)
            project = _submit(pool, project_checks(settings))
            found = [_judge_settings(settings), *_collect(project)]
            found += _result("database", database)
        return [*_collect(machine), *found, *_collect(programs)]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _judge_settings(settings: Settings) -> Finding:
    """Say where the settings that aren't defaults come from."""
    chosen = {
        name: str(origin)
        for name, origin in sorted(settings.origins.items())
        if origin.kind not in ("default", "derived")
    }
    words = "readable, all defaults" if not chosen else f"readable, {', '.join(chosen)} set"
    return Finding("settings", State.OK, words, None, {"origins": chosen})


def _submit(
    pool: ThreadPoolExecutor, checks: Mapping[str, Check]
) -> dict[str, Future[list[Finding]]]:
    return {name: pool.submit(_one, name, check) for name, check in checks.items()}


def _one(name: str, check: Check) -> list[Finding]:
    return [isolated(name, check)]


def _collect(futures: Mapping[str, Future[list[Finding]]]) -> list[Finding]:
    return [finding for name, future in futures.items() for finding in _result(name, future)]


def _result(name: str, future: Future[list[Finding]]) -> list[Finding]:
    try:
        return future.result(SECONDS)
    except TimeoutError:
        words = f"no answer within {SECONDS:g} s"
        fix = "see whether a disk or the network hangs"
        return [Finding(name, State.PROBLEM, words, fix)]
