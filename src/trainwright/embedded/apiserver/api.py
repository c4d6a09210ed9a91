"""What operations and controllers work on: state, types, admission, time. Nothing here knows HTTP."""

from __future__ import annotations

from collections.abc import Callable

from trainwright.api.times import rfc3339
from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.admission.chain import Admission
from trainwright.embedded.apiserver.controllers.peers import Peers
from trainwright.embedded.apiserver.operations.appliedcache import AppliedCache
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.http.limits import Budget
from trainwright.schema.jsonobject import Json

WATCH_BYTES = 32 * 2**20
"""Lines that wait for watchers and that no other watcher shares."""


def _nothing_to_check(user: User, served: Type, obj: Json, old: Json | None) -> None:
    """A server without users."""


class Api:
    def __init__(self, state: State, registry: Registry) -> None:
        self.state = state
        self.clock = state.clock
        self._second, self._now = -1, ""
        self.registry = registry
        self.uncanonical: dict[Key, int] = {}  # objects that the next write stores anew, with their version
        self.applied = AppliedCache()
        self.peers = Peers(self.clock)
        self.watch_budget = Budget(WATCH_BYTES)
        self.admission = Admission(self)
        self.check_escalation: Callable[[User, Type, Json, Json | None], None] = _nothing_to_check

    def now(self) -> str:
        """The present, as timestamps write it: in whole seconds, so one text serves many writes."""
        second = int(self.clock.wall())
        if second != self._second:
            self._second, self._now = second, rfc3339(second)
        return self._now

    @staticmethod
    def to_storage(served: Type, obj: Json) -> Json:
        return obj if served.to_storage is None else served.to_storage(obj)

    def check_serving(self, served: Type, name: str) -> None:
        """A type whose CRD is being deleted takes no new objects."""
        if served.resource in self.registry.terminating:
            text = "create not allowed while custom resource definition is terminating"
            raise errors.forbidden(served.group, served.plural, name, text)
        if served.custom and self.registry.find(served.group, served.version, served.plural) is not served:
            current = self.registry.find(served.group, served.version, served.plural)
            if current is None:
                raise errors.unknown_resource()
