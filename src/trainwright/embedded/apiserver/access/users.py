"""Users: who asks, with the groups and attributes that authorization and admission look at."""

from __future__ import annotations

import msgspec

from trainwright.schema.jsonobject import Json


class User(msgspec.Struct, frozen=True):
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}

    def info(self) -> Json:
        """The user as reviews and webhooks show it."""
        found: Json = {"username": self.name}
        if self.uid:
            found["uid"] = self.uid
        found["groups"] = list(self.groups)
        if self.extra:
            found["extra"] = self.extra
        return found


SYSTEM = User("system:apiserver", groups=("system:masters",))  # the server itself
