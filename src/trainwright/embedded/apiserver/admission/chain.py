"""The chain of admission: mutating webhooks, then validating ones.

In: the operation, the object and what it was. Out: the object as webhooks changed it, or the refusal of one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..errors import Json
from ..store import Key
from ..types import Type
from ..writing import User, WriteOptions

if TYPE_CHECKING:
    from ..api import Api


class Call(msgspec.Struct, frozen=True):
    """What is about to happen, apart from the objects."""

    served: Type
    operation: str
    subresource: str
    key: Key
    user: User
    options: WriteOptions


class Admission:
    def __init__(self, api: Api) -> None:
        self.api = api

    def call(self, served: Type, operation: str, subresource: str, key: Key, user: User, options: WriteOptions) -> Call:
        return Call(served, operation, subresource, key, user, options)

    async def mutate(self, call: Call, obj: Json, old: Json | None) -> Json | None:
        """The changed object, or None if no webhook had anything to do with it."""
        return None

    async def validate(self, call: Call, obj: Json | None, old: Json | None) -> None:
        """Raises the refusal of the first webhook that refuses."""

    async def close(self) -> None:
        """End connections to webhooks."""
