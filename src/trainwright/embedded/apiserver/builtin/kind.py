"""What built-in kinds have in common: names, Go's decoding, published schemas.

A built-in kind is one class: its names and columns are class attributes, its defaults and rules are methods, and
`served` makes the `Type` that the server serves. kinds.py lists them all.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from trainwright.api.times import rfc3339
from trainwright.clock import Clock
from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.embedded.apiserver.fieldmanager.nodes import UNTYPED, Node, object_node
from trainwright.embedded.apiserver.metadata import standard_finalizers
from trainwright.embedded.apiserver.types import ALL_VERBS, Column, Strategy, Type
from trainwright.embedded.apiserver.wire import table
from trainwright.schema import kubernetes
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.strategic import MergeSchema

STATUS_FIELD: FieldSet = {"f:status": {}}
STATUS_SUBRESOURCE = {"status": {"verbs": ["get", "patch", "update"]}}
CREATE_ONLY = ("create",)


class BuiltinKind(Strategy):
    """A kind of Kubernetes itself. Each server has its own instances, which share its clock."""

    group = ""
    version = "v1"
    plural = ""
    kind = ""
    namespaced = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: Mapping[str, Any] = {}
    columns: tuple[Column, ...] = ()
    any_finalizer = False  # newer API groups accept finalizers without a domain

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def now(self) -> str:
        """The present time as a timestamp."""
        return rfc3339(self.clock.wall())

    def served(self) -> Type:
        return Type(
            group=self.group,
            version=self.version,
            plural=self.plural,
            singular=self.kind.lower(),
            kind=self.kind,
            namespaced=self.namespaced,
            strategy=self,
            short_names=self.short_names,
            categories=self.categories,
            verbs=self.verbs,
            subresources=dict(self.subresources),
            columns=self.columns,
            make_node=self.node,
            schema=self._definition if self._is_published else None,
        )

    @functools.cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @functools.cached_property
    def wire(self) -> str:
        """The Go type in the wire table, such as `core/v1.Pod`."""
        return f"{self.group.partition('.')[0] or 'core'}/{self.version}.{self.kind}"

    @property
    def _is_published(self) -> bool:
        """Whether Kubernetes publishes a schema of this kind."""
        return kubernetes.has_kind(self.api_version, self.kind)

    def _definition(self) -> Json:
        return kubernetes.definition(kubernetes.definition_name(self.api_version, self.kind))

    def decode(self, obj: Json) -> tuple[Json, list[str]]:
        decoded, unknown = table.decode(self.wire, obj)
        return {"kind": self.kind, "apiVersion": self.api_version, **decoded}, unknown

    def empty(self) -> Json:
        decoded, _ = self.decode({})
        return decoded

    def node(self) -> Node:
        return object_node(self._definition(), kubernetes.definition) if self._is_published else UNTYPED

    def merge_schema(self) -> MergeSchema:
        return kubernetes.merge_schema(self.api_version, self.kind)

    def prepare_create(self, obj: Json) -> None:
        if self.has_status:
            obj["status"] = {}

    def prepare_update(self, obj: Json, old: Json) -> None:
        if self.has_status and "status" in old:
            obj["status"] = old["status"]

    def check_create(self, obj: Json, found: list[FieldError]) -> list[FieldError]:
        return found + self._finalizer_faults(obj) + self.validate(obj)

    def check_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        # Once for the change, and again for kinds that also validate the metadata of the new object.
        finalizers = (1 + self.metadata_repeats) * self._finalizer_faults(obj)
        return found + finalizers + self.validate_update(obj, old)

    def check_status_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        return found + self._finalizer_faults(obj) + self.validate_status_update(obj, old)

    def _finalizer_faults(self, obj: Json) -> list[FieldError]:
        return [] if self.any_finalizer else standard_finalizers(obj["metadata"])

    def field_names(self) -> frozenset[str]:
        return frozenset(self.fields({"metadata": {}}))


class KindWithStatus(BuiltinKind):
    """A built-in kind with a status subresource."""

    has_status = True
    subresources: Mapping[str, Any] = STATUS_SUBRESOURCE
    ignored_on_main = STATUS_FIELD
