"""A served type: one version of one resource, and the rules of its kind.

`Type` is what the router finds for a path. `Strategy` is what a kind may decide for itself; the defaults are those of
a kind with no rules of its own. Built-in kinds bring strategies from `builtin/`, custom ones from
`custom/kind.py`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import msgspec

from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.embedded.apiserver.fieldmanager.manager import FieldManager
from trainwright.embedded.apiserver.fieldmanager.nodes import UNTYPED, Node
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults
from trainwright.schema.strategic import UNTYPED as UNTYPED_MERGE
from trainwright.schema.strategic import MergeSchema

NOTHING: FieldSet = {}
SPEC: FieldSet = {"f:spec": {}}
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Column(msgspec.Struct, frozen=True):
    """One column of a Table. `cell` gets the object and the present, in seconds since the epoch."""

    name: str
    type: str
    cell: Callable[[Json, float], Any]
    format: str = ""
    description: str = ""
    priority: int = 0


class Strategy:
    """The rules of one kind. Objects are plain JSON with apiVersion and kind; the methods change them in place."""

    unconditional_update = True
    error_group: str | None = None  # where errors name another group than the path does
    create_on_update = False
    has_status = False
    tracks_generation = False
    returns_deleted = False  # DELETE answers with the object instead of a Status
    metadata_repeats = 0  # how often the kind's own update validation judges the metadata once more
    ignored_on_main: FieldSet = NOTHING
    ignored_on_status: FieldSet = SPEC

    def decode(self, obj: Json) -> tuple[Json, list[str]]:
        """The object as this kind knows it, and its unknown fields. Raises ValueError in the decoder's words."""
        return obj, []

    def empty(self) -> Json:
        """An object of this kind with nothing set, as the decoder makes it."""
        return {"metadata": {}}

    def default(self, obj: Json) -> None: ...

    def default_applied(self, obj: Json) -> None:
        """Defaults after server-side apply."""
        self.default(obj)

    def on_read(self, obj: Json) -> None:
        """What decoding from storage adds to an object that was stored without it."""

    def rewrites(self, stored: Stored) -> bool:
        """Whether an update that changes nothing still stores the object, because reads show more than was stored."""
        return False

    def labels_of(self, stored: Stored) -> dict[str, str] | None:
        """The labels selectors see."""
        return stored.labels

    def default_policy(self) -> str:
        """The propagation policy of a delete that names none."""
        return "Background"

    def merge_schema(self) -> MergeSchema:
        return UNTYPED_MERGE

    def prepare_create(self, obj: Json) -> None:
        if self.has_status:
            obj.pop("status", None)

    def prepare_update(self, obj: Json, old: Json) -> None:
        """Main resource: the status stays as it was."""
        if self.has_status:
            _restore(obj, old, "status")

    def prepare_status_update(self, obj: Json, old: Json) -> None:
        """Status subresource: everything but the status stays; of the metadata, labels and such may change for built-
        ins."""
        _restore(obj, old, "spec")

    def generation_content(self, obj: Json) -> Any:
        """What must change for the generation to grow."""
        return obj.get("spec")

    def name_faults(self, name: str) -> list[str]:
        return dns1123_subdomain_faults(name)

    def validate(self, obj: Json) -> list[FieldError]:
        return []

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        return self.validate(obj)

    def validate_status_update(self, obj: Json, old: Json) -> list[FieldError]:
        return []

    def check_create(self, obj: Json, found: list[FieldError]) -> list[FieldError]:
        """All faults of a new object; `found` are those of its metadata."""
        return found + self.validate(obj)

    def check_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        return found + self.validate_update(obj, old)

    def check_status_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        return found + self.validate_status_update(obj, old)

    def removable(self, obj: Json) -> bool:
        """Whether an object without finalizers may go once it was deleted."""
        return True

    def check_delete(self, obj: Json, policy: object) -> None:
        """Refuse a deletion (raises StatusError) or warn about it."""

    def mark_deleting(self, obj: Json) -> None:
        """Called when a deletion has to wait for finalizers."""

    def check_graceful(self, obj: Json, grace: int | None) -> int | None:
        """The grace period of a first deletion, None if this kind goes at once."""
        return None

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        return []

    def fields(self, obj: Json) -> dict[str, str]:
        """Values for field selectors beside metadata.name and metadata.namespace."""
        return {}

    def field_names(self) -> frozenset[str]:
        return frozenset()


def _restore(obj: Json, old: Json, field: str) -> None:
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)


@dataclasses.dataclass(eq=False)
class Type:
    """One served version of a resource."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    strategy: Strategy
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: dict[str, Any] = dataclasses.field(default_factory=dict)
    custom: bool = False
    columns: tuple[Column, ...] = ()
    row_conditions: Callable[[Json], list[Json]] | None = None
    sibling_versions: tuple[str, ...] = ()  # apiVersions of the same custom kind
    deprecation: str = ""  # a warning for every request in this version
    storage_resource: str = ""  # another resource's table, for a type that is a second view of it
    make_node: Callable[[], Node] = lambda: UNTYPED
    schema: Callable[[], Json] | None = None  # OpenAPI of the object, for openapi.py and strategic merge
    to_storage: Callable[[Json], Json] | None = None
    from_storage: Callable[[Json], Json] | None = None

    def __post_init__(self) -> None:
        self.list_kind = self.list_kind or f"{self.kind}List"
        self.api_version = f"{self.group}/{self.version}" if self.group else self.version
        self.resource = self.storage_resource or (f"{self.plural}.{self.group}" if self.group else self.plural)
        head = msgspec.json.encode({"kind": self.kind, "apiVersion": self.api_version})
        self.head = head[:-1] + b","  # put in front of stored bytes
        self._managers: dict[str, FieldManager] = {}  # by subresource

    @property
    def go_type(self) -> str:
        """What messages call the objects of this type."""
        if self.custom:
            return "*unstructured.Unstructured"
        return f"*{self.group.partition('.')[0] or 'core'}.{self.kind}"

    @functools.cached_property
    def node(self) -> Node:
        return self.make_node()

    def field_manager(self, subresource: str = "") -> FieldManager:
        found = self._managers.get(subresource)
        if found is None:
            strategy = self.strategy
            ignored = strategy.ignored_on_status if subresource == "status" else strategy.ignored_on_main
            replicas: tuple[str, ...] = ()
            if subresource == "scale":
                ignored = {}
                replicas = tuple(self.subresources["scale"]["paths"]["specReplicasPath"].strip(".").split("."))
            found = FieldManager(
                self.node, self.api_version, self.kind, subresource, ignored, strategy.empty(), replicas
            )
            self._managers[subresource] = found
        return found

    def whole(self, data: bytes) -> bytes:
        """Stored bytes with apiVersion and kind in front."""
        if self.from_storage is not None:
            converted = self.from_storage(msgspec.json.decode(data))
            data = msgspec.json.encode(converted)
        return self.head + data[1:]

    def whole_object(self, data: bytes) -> Json:
        obj: Json = msgspec.json.decode(data)
        if self.from_storage is not None:
            obj = self.from_storage(obj)
        return {"kind": self.kind, "apiVersion": self.api_version, **obj}
