"""How often the operator asks the API server whose token it was shown: rarely, whatever comes in.

Anybody who reaches the operator's ports can show tokens. Each question would be a request, so there is one limit for
all of them, answers are remembered by a hash, and what a token says of itself is read first.
"""

from __future__ import annotations

import base64
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from trainwright.controlloop import Clock

PER_SECOND = 10
LONGEST_WAIT_SECONDS = 5.0
AT_ONCE = 4
REMEMBERED = 10_000


class TooManyReviews(Exception):
    """More tokens wait to be checked than can be in a reasonable time."""


class Claims(msgspec.Struct, frozen=True):
    """What a token says of itself."""

    aud: list[str] | str = ""
    exp: float = 0.0

    def is_for(self, audience: str) -> bool:
        return audience == self.aud if isinstance(self.aud, str) else audience in self.aud


_decoder = msgspec.json.Decoder(Claims)


def claims_of(token: str) -> Claims | None:
    """Read without any proof; None for what is no JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        return _decoder.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, msgspec.MsgspecError):
        return None


def digest(*texts: str) -> bytes:
    return hashlib.sha256("\0".join(texts).encode(errors="replace")).digest()


class Remembered:
    """Answers by the hash of what was asked, for some seconds, the newest few thousand."""

    def __init__(self, clock: Clock, seconds: float, most: int = REMEMBERED) -> None:
        self._clock = clock
        self._seconds = seconds
        self._most = most
        self._answers: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def get(self, key: bytes) -> str | None:
        found = self._answers.get(key)
        return found[0] if found is not None and self._clock.now() < found[1] else None

    def put(self, key: bytes, answer: str) -> None:
        self._answers[key] = (answer, self._clock.now() + self._seconds)
        self._answers.move_to_end(key)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)


class Reviewing:
    """Turns to ask: `PER_SECOND` evenly spaced; who would wait too long is turned away."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_at = float("-inf")
        self._asking = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Raises `TooManyReviews`."""
        now = self._clock.now()
        at = max(now, self._next_at)
        if at - now > LONGEST_WAIT_SECONDS or self._asking >= AT_ONCE + PER_SECOND * LONGEST_WAIT_SECONDS:
            raise TooManyReviews
        self._next_at = at + 1 / PER_SECOND
        self._asking += 1
        try:
            if at > now:
                await self._clock.sleep(at - now)
            yield
        finally:
            self._asking -= 1
