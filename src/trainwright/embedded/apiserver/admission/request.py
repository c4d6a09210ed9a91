"""An admission request: the operation, its target and its user."""

from __future__ import annotations

import msgspec

from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.operations.writes import WriteOptions
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type


class AdmissionRequest(msgspec.Struct, frozen=True):
    """A write that is about to happen, without the objects."""

    served: Type
    operation: str
    subresource: str
    key: Key
    user: User
    options: WriteOptions
