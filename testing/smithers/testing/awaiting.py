"""Await what an async body returned, as an executor does."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import cast


def awaited(value: object) -> object:
    """Give a value, awaited if it is awaitable; within a running loop, by a thread's own."""
    if not inspect.isawaitable(value):
        return value
    coroutine = _await(cast("Awaitable[object]", value))
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


async def _await(value: Awaitable[object]) -> object:
    return await value
