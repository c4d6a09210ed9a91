"""Waiting for real processes: look again until it is so, and never longer than a deadline.

Tests in virtual time turn their clock instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")
SECONDS = 30.0
PAUSE = 0.05


def eventually(what: str, look: Callable[[], T | None], seconds: float = SECONDS) -> T:
    """Look until the answer is true, and return it."""
    end = time.monotonic() + seconds
    while not (answer := look()):
        assert time.monotonic() < end, _too_late(what, seconds, answer)
        time.sleep(PAUSE)
    return answer


@overload
async def until(what: str, look: Callable[[], Awaitable[T | None]], seconds: float = SECONDS) -> T: ...
@overload
async def until(what: str, look: Callable[[], T | None], seconds: float = SECONDS) -> T: ...
async def until(what: str, look: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Look until the answer is true, and return it; other tasks run meanwhile."""
    end = time.monotonic() + seconds
    while not (answer := await _answer(look)):
        assert time.monotonic() < end, _too_late(what, seconds, answer)
        await asyncio.sleep(PAUSE)
    return answer


async def _answer(look: Callable[[], Any]) -> Any:
    answer = look()
    return await answer if isinstance(answer, Awaitable) else answer


def _too_late(what: str, seconds: float, answer: object) -> str:
    return f"not within {seconds:.0f} s: {what} (seen last: {answer!r})"
