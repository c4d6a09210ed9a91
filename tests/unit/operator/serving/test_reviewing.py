"""Bogus tokens cost the API server next to nothing and the operator no memory."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from trainwright.api.resources import TRAIN_JOBS
from trainwright.operator.serving.reviewing import PER_SECOND, TooManyReviews
from trainwright.operator.serving.tokens import Tokens, audience
from unit.operator.world import World, train_job

BOGUS = 12_000


def jwt(claims: dict[str, Any], signature: str = "c2ln") -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{payload}.{signature}"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World(start=False) as world:
        await world.add(TRAIN_JOBS, train_job())
        yield world


def reviews(world: World) -> int:
    return sum("tokenreviews" in request.path for request in world.server.faults.asked)


def forged(world: World, number: int) -> str:
    return jwt({"aud": [audience("ns", "job")], "exp": world.clock.wall() + 3600}, f"forged{number}")


@pytest.mark.parametrize("what", ["no JWT", "other audience", "audience that contains it", "expired", "no claims"])
async def test_what_a_token_says_of_itself_can_refuse_it_without_a_question(world: World, what: str) -> None:
    now, wanted = world.clock.wall(), audience("ns", "job")
    token = {
        "no JWT": "garbage",
        "other audience": jwt({"aud": [audience("ns", "other")], "exp": now + 60}),
        "audience that contains it": jwt({"aud": f"x{wanted}x", "exp": now + 60}),
        "expired": jwt({"aud": wanted, "exp": now - 1}),
        "no claims": "a.b.c",
    }[what]
    tokens = Tokens(world.server.client, world.clock, tuple)
    assert await tokens.reporter_of(token, "ns", "job") == ""
    assert reviews(world) == 0


async def test_forged_tokens_cause_at_most_ten_reviews_a_second(world: World) -> None:
    tokens = Tokens(world.server.client, world.clock, tuple)
    tries = [asyncio.create_task(tokens.reporter_of(forged(world, number), "ns", "job")) for number in range(825)]
    await world.clock.advance(1.0)
    assert 5 <= reviews(world) <= PER_SECOND + 1
    await world.clock.advance(9.0)
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert reviews(world) <= 10 * PER_SECOND
    assert any(isinstance(answer, TooManyReviews) for answer in answers)
    assert all(answer == "" for answer in answers if not isinstance(answer, BaseException))


async def test_twelve_thousand_bogus_tokens_leave_little_behind(world: World) -> None:
    tokens = Tokens(world.server.client, world.clock, tuple)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(BOGUS):
            garbage = jwt({"aud": "x" * 700, "exp": 0}, f"{number}" * 100)
            assert await tokens.reporter_of(garbage, "ns", "job") == ""
            tokens._bad.put(number.to_bytes(32, "big"), "")  # as if each had been reviewed
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 10 * 2**20
    finally:
        tracemalloc.stop()


async def test_a_refusal_is_remembered_and_pushes_no_verdict_out(world: World) -> None:
    tokens = Tokens(world.server.client, world.clock, tuple)
    token = forged(world, 1)
    for _ in range(3):
        assert await tokens.reporter_of(token, "ns", "job") == ""
    assert reviews(world) == 1
    await world.clock.advance(6)
    assert await tokens.reporter_of(token, "ns", "job") == ""
    assert reviews(world) == 2
