"""Keys that wait, by whom they belong to: those of one share come out in order, and shares take turns.

So a tenant with one key waits for one key of each other tenant, however many those have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Turns(Generic[K]):
    def __init__(self, share: Callable[[K], Hashable]) -> None:
        self._share = share
        self._shares: dict[Hashable, deque[K]] = {}  # none is empty; the first has the next turn
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, key: K) -> None:
        share = self._share(key)
        waiting = self._shares.get(share)
        if waiting is None:
            self._shares[share] = deque((key,))
        else:
            waiting.append(key)
        self._length += 1

    def popleft(self) -> K:
        share = next(iter(self._shares))
        waiting = self._shares[share]
        key = waiting.popleft()
        if not waiting:
            del self._shares[share]
        elif len(self._shares) > 1:
            self._shares[share] = self._shares.pop(share)  # its next turn comes after the others'
        self._length -= 1
        return key
