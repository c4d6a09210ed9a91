"""What all built-in kinds share: Go's decoding, published schemas, and the status beside the spec."""

from __future__ import annotations

from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.embedded.apiserver.fieldmanager.nodes import UNTYPED, Node, object_node
from trainwright.embedded.apiserver.metadata import standard_finalizers
from trainwright.embedded.apiserver.types import Strategy
from trainwright.embedded.apiserver.wire import table
from trainwright.schema import kubernetes
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.strategic import MergeSchema

STATUS_FIELD: FieldSet = {"f:status": {}}


class BuiltinStrategy(Strategy):
    """`wire` names the Go type in the wire table, such as `core/v1.Pod`."""

    wire = ""
    api_version = "v1"
    kind = ""
    any_finalizer = False  # newer API groups do not ask for a domain in front of it

    def decode(self, obj: Json) -> tuple[Json, list[str]]:
        decoded, unknown = table.decode(self.wire, obj)
        return {"kind": self.kind, "apiVersion": self.api_version, **decoded}, unknown

    def empty(self) -> Json:
        decoded, _ = table.decode(self.wire, {})
        return {"kind": self.kind, "apiVersion": self.api_version, **decoded}

    def check_create(self, obj: Json, found: list[FieldError]) -> list[FieldError]:
        return found + ([] if self.any_finalizer else standard_finalizers(obj["metadata"])) + self.validate(obj)

    def check_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        # Once with the change, and again by kinds that judge its metadata as that of a new object.
        times = 0 if self.any_finalizer else 1 + self.metadata_repeats
        return found + times * standard_finalizers(obj["metadata"]) + self.validate_update(obj, old)

    def check_status_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        times = 0 if self.any_finalizer else 1
        return found + times * standard_finalizers(obj["metadata"]) + self.validate_status_update(obj, old)

    def node(self) -> Node:
        if not kubernetes.has_kind(self.api_version, self.kind):
            return UNTYPED
        name = kubernetes.definition_name(self.api_version, self.kind)
        return object_node(kubernetes.definition(name), kubernetes.definition)

    def merge_schema(self) -> MergeSchema:
        return kubernetes.merge_schema(self.api_version, self.kind)

    def prepare_create(self, obj: Json) -> None:
        if self.has_status:
            obj["status"] = {}

    def prepare_update(self, obj: Json, old: Json) -> None:
        if self.has_status and "status" in old:
            obj["status"] = old["status"]


class StatusStrategy(BuiltinStrategy):
    """A kind with a status subresource."""

    has_status = True
    ignored_on_main = STATUS_FIELD
