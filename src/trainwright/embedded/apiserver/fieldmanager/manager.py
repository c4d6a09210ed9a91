"""The managedFields of one object: what handlers call on every write.

In: the live object (None for a create), and the new object or the applied configuration. Out: the object with its
`managedFields` brought up to date, or a 409 that lists the conflicts.
"""

from __future__ import annotations

from typing import Any

from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.fieldmanager import fieldset, lastapplied
from trainwright.embedded.apiserver.fieldmanager.conflicts import Conflicts, conflict_status
from trainwright.embedded.apiserver.fieldmanager.entries import (
    Identity,
    Managed,
    Owned,
    cap_updaters,
    read,
    stored,
    write,
)
from trainwright.embedded.apiserver.fieldmanager.fields import fields_of
from trainwright.embedded.apiserver.fieldmanager.fieldset import LEAF, FieldSet
from trainwright.embedded.apiserver.fieldmanager.nodes import Node
from trainwright.embedded.apiserver.fieldmanager.scale import scaled
from trainwright.embedded.apiserver.fieldmanager.updater import AppliedConfiguration, Updater
from trainwright.embedded.apiserver.fieldmanager.validation import check
from trainwright.embedded.apiserver.storage.equality import same
from trainwright.schema.jsonobject import Json

_STRIPPED: FieldSet = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {
        ".": LEAF,
        **dict.fromkeys(
            (
                *("f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid", "f:clusterName"),
                *("f:generation", "f:managedFields", "f:resourceVersion"),
            ),
            LEAF,
        ),
    },
}


class FieldManager:
    """Tracks ownership for one served version of a type, or for one of its subresources.

    `ignored` are the fields that this endpoint cannot change. `empty` is what a create is compared with: Go's zero
    value of a built-in kind, which has its structs already. `replicas` is where the scale subresource finds them.
    """

    def __init__(
        self,
        node: Node,
        version: str,
        kind: str,
        subresource: str = "",
        ignored: FieldSet | None = None,
        empty: Json | None = None,
        replicas: tuple[str, ...] = (),
    ) -> None:
        self.node = node
        self.version = version
        self.kind = kind
        self.subresource = subresource
        self.ignored: FieldSet = ignored or {}
        self.empty: Json = empty or {"metadata": {}}
        self.replicas = replicas
        self._updater = Updater(node, version, self.ignored)

    def update(self, live: Json | None, new: Json, manager: str, now: str) -> None:
        """Set the entries on `new`, the outcome of a create, an update or a patch that is not an apply."""
        metadata = new["metadata"]
        managed = self._managed(live, metadata)
        metadata.pop("managedFields", None)
        if not managed.fields and live is not None and live["metadata"].get("uid"):
            return  # a client has switched tracking off for this object
        if self.subresource == "scale" and live is not None:
            before, after = _replicas(live, self.replicas), _replicas(new, self.replicas)
            path: FieldSet = {}
            fieldset.insert(path, tuple(f"f:{name}" for name in self.replicas))
            metadata["managedFields"] = scaled(managed, path, before, after, manager, self.version)
            return
        self._update(self._untracked(live), new, managed, manager, now)
        cap_updaters(managed)
        if managed.fields:
            metadata["managedFields"] = write(managed)

    def prepare(self, config: Json) -> AppliedConfiguration:
        """Check a configuration and find its fields, once for many applies. Nobody may change it afterwards."""
        faults = check(self.node, config)
        if faults:
            raise self._typed_error(config, faults)
        fields = fieldset.without(fields_of(self.node, config), self.ignored)
        return AppliedConfiguration(config, fields, fieldset.difference(fields, _STRIPPED))

    def apply(
        self, live: Json | None, applied: AppliedConfiguration, manager: str, now: str, *, force: bool
    ) -> Json | None:
        """Server-side apply: the merged object with its entries, or None if nothing changes.

        The result may share parts with `live` and the configuration.
        """
        current = self._untracked(live)
        managed = stored((live or {}).get("metadata", {}).get("managedFields"))
        known = managed.fields
        if not known and live is not None:
            self._update(self.empty, current, managed, "before-first-apply", now)
        result = self._apply(current, applied, managed, manager, now, force=force)
        if manager == "kubectl" and lastapplied.annotation_of(result):
            result = lastapplied.refreshed(result, applied.config)
        if known and managed.fields == known and same(result, current):
            return None
        entries = write(managed)
        metadata = result["metadata"] = dict(result.get("metadata") or {})
        if entries:
            metadata["managedFields"] = entries
        return result

    def _managed(self, live: Json | None, metadata: Json) -> Managed:
        """The entries that count: those the client sent with the new object, or the stored ones if it sent none that
        can be read."""
        ours = (live or {}).get("metadata", {}).get("managedFields")
        if self.subresource:
            return stored(ours)
        sent = metadata.get("managedFields")
        if isinstance(sent, list) and (not sent or sent == [{}]):
            return Managed()
        managed = read(sent)
        return managed if managed is not None and managed.fields else stored(ours)

    def _untracked(self, obj: Json | None) -> Json:
        """The object without its managedFields, or the empty object."""
        if obj is None:
            return self.empty
        metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
        return {**obj, "metadata": metadata}

    def _update(self, live: Json, new: Json, managed: Managed, manager: str, now: str) -> None:
        managed.fields, gained = self._updater.update(live, new, managed.fields)
        gained = fieldset.difference(gained, _STRIPPED)
        if gained:
            who = Identity.of(manager, "Update", self.version, self.subresource)
            before = managed.fields.get(who)
            joined = gained if before is None else fieldset.union(gained, before.fields)
            managed.fields[who] = Owned(joined, self.version)
            managed.times[who] = now

    def _apply(
        self, live: Json, applied: AppliedConfiguration, managed: Managed, manager: str, now: str, *, force: bool
    ) -> Json:
        who = Identity.of(manager, "Apply", self.version, self.subresource)
        try:
            result, fields = self._updater.apply(live, applied, managed.fields, who, force=force)
        except Conflicts as found:
            # kubectl may take over what it set itself by client-side apply.
            allowed = lastapplied.allowed_conflicts(self.node, live, self.version) if manager == "kubectl" else {}
            left = found.without(allowed)
            if left:
                raise conflict_status(left) from None
            result, fields = self._updater.apply(live, applied, managed.fields, who, force=True)
        managed.fields = fields
        if not same(result, live):
            managed.times[who] = now
        return result

    def _typed_error(self, config: Json, faults: list[str]) -> StatusError:
        metadata = config.get("metadata") or {}
        group, _, version = self.version.rpartition("/")
        where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {group}/{version}, Kind={self.kind}"
        text = faults[0] if len(faults) == 1 else "errors:\n" + "\n".join(f"  {fault}" for fault in faults)
        # kube-apiserver answers 500; the fault is the client's, so we answer 400.
        return bad_request(f"failed to create typed patch object ({where}): {text}")


def _replicas(obj: Any, path: tuple[str, ...]) -> int:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, int) else 0


def refuse_managed_fields(config: Json) -> None:
    """Refuse an applied configuration that sets managedFields."""
    if (config.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
