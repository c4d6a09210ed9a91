"""The core that handlers and controllers share: state, types, namespaces, admission.

Nothing here knows HTTP. `reading.py`, `writing.py` and `deletion.py` hold the operations; this is what they work on.
"""

from __future__ import annotations

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.admission.chain import Admission
from trainwright.embedded.apiserver.controllers.namespaces import Namespaces
from trainwright.embedded.apiserver.controllers.peers import Peers
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json


class Api:
    def __init__(self, state: State, registry: Registry) -> None:
        self.state = state
        self.registry = registry
        self.unsettled: dict[Key, int] = {}  # objects to be stored anew by the next write, with their version
        self.peers = Peers()
        self.namespaces = Namespaces(self)
        self.admission = Admission(self)

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
