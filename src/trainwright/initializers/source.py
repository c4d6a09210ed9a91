"""What the sources have in common: they list items, and they read ranges of them.

A source is one class for each scheme: `huggingface`, `s3`, `https`, `localfiles`. It knows its protocol and its
credentials; it does not retry, resume, check or write. What it raises is final, but for `Transient`.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from trainwright.initializers.digests import Digest


@dataclass(frozen=True, slots=True)
class Item:
    """One file of a source.

    `identity` changes whenever the bytes do: what was fetched under the same identity may be used again. `location` is
    the source's own: a URL, a key, a path. A `size` of None is unknown. Only a `resumable` item can be read from the
    middle, and only its identity can be trusted in another run.
    """

    name: str
    size: int | None
    identity: str
    location: str
    digest: Digest | None = None
    resumable: bool = True

    @property
    def key(self) -> str:
        """The identity as a file name. A hash, because identities hold addresses, which may hold secrets."""
        return hashlib.sha256(self.identity.encode("utf-8", "surrogateescape")).hexdigest()


class Source(Protocol):
    uri: str
    """For messages: without credentials."""
    is_cached: bool
    """Whether fetching from it costs more than keeping a copy on this machine."""

    async def items(self) -> list[Item]:
        """Everything it has, by the names it will have below the target; patterns are applied. One try."""
        ...

    def read(self, item: Item, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to `end` (None: to the end). One try; ends early only by raising."""
        ...

    async def digest(self, item: Item) -> Digest | None:
        """What the bytes must add up to, where the source says. It may have learned it by reading."""
        ...


def is_ignored(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern of IGNORE_PATTERNS matches: shell wildcards, `*` matches `/` too, a final `/` all below it."""
    return any(fnmatchcase(name, f"{pattern}*" if pattern.endswith("/") else pattern) for pattern in patterns)
