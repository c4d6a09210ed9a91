"""The managedFields of one object through its life: what handlers call.

In: the live object (None for a create), and the new object or the applied configuration. Out: the object with its
`managedFields` brought up to date. Conflicts become the 409 that kubectl knows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.fieldmanager import fieldset, lastapplied
from trainwright.embedded.apiserver.fieldmanager.entries import Managed, identity, parts, read, write
from trainwright.embedded.apiserver.fieldmanager.fieldset import LEAF, FieldSet
from trainwright.embedded.apiserver.fieldmanager.nodes import Node
from trainwright.embedded.apiserver.fieldmanager.scale import scaled
from trainwright.embedded.apiserver.fieldmanager.updater import Conflicts, Owned, apply, update
from trainwright.embedded.apiserver.fieldmanager.walk import check, fields_of
from trainwright.embedded.apiserver.storage.equality import same
from trainwright.schema.jsonobject import Json

MAX_UPDATERS = 10
_SELF = "\0current"
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


class Applied(NamedTuple):
    """A configuration and the fields it sets."""

    config: Json
    fields: FieldSet
    stored: FieldSet  # of these, what managedFields keeps


class FieldManager:
    """For one served version of a type and, if any, one subresource. `ignored` are fields that this endpoint cannot
    change."""

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
        # What a create is compared with. Of a built-in kind this is Go's zero value, which has its structs already.
        self.empty: Json = empty or {"metadata": {}}
        self.version = version
        self.kind = kind
        self.subresource = subresource
        self.ignored: FieldSet = ignored or {}
        self.replicas = replicas  # where a Scale finds them

    def update(self, live: Json | None, new: Json, manager: str, now: str) -> None:
        """A create, update or patch that is not an apply; sets the entries on `new`."""
        metadata = new["metadata"]
        managed = self._live_or_new(live, metadata)
        metadata.pop("managedFields", None)
        if not managed.fields and live is not None and live["metadata"].get("uid"):
            return  # someone switched tracking off for this object
        if self.subresource == "scale" and live is not None:
            before, after = _replicas(live, self.replicas), _replicas(new, self.replicas)
            path: FieldSet = {}
            fieldset.insert(path, tuple(f"f:{name}" for name in self.replicas))
            metadata["managedFields"] = scaled(managed, path, before, after, manager, self.version)
            return
        self._update(self._bare(live), new, managed, identity(manager, "Update", self.version, self.subresource), now)
        _cap(managed)
        if managed.fields:
            metadata["managedFields"] = write(managed)

    def _bare(self, obj: Json | None) -> Json:
        """The object without its managedFields; of nothing, the empty object."""
        if obj is None:
            return self.empty
        metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
        return {**obj, "metadata": metadata}

    def _live_or_new(self, live: Json | None, metadata: Json) -> Managed:
        ours = (live or {}).get("metadata", {}).get("managedFields")
        if self.subresource:
            return read(ours, ours=True) or Managed()
        sent = metadata.get("managedFields")
        if isinstance(sent, list) and (not sent or sent == [{}]):
            return Managed()
        managed = read(sent)
        if managed is None or not managed.fields:
            return read(ours, ours=True) or Managed()
        return managed

    def _update(self, live: Json, new: Json, managed: Managed, key: str, now: str) -> None:
        fields = update(self.node, live, new, self.version, managed.fields, _SELF, self.ignored)
        mine = fields.pop(_SELF, None)
        if mine is not None:
            kept = fieldset.difference(mine.fields, _STRIPPED)
            if kept:
                before = fields.get(key)
                joined = fieldset.union(kept, before.fields) if before is not None else kept
                fields[key] = Owned(joined, self.version, False)
                managed.times[key] = now
        managed.fields = fields

    def prepare(self, config: Json) -> Applied:
        """A configuration judged and measured once, however often it is applied. It must not be changed afterwards."""
        faults = check(self.node, config)
        if faults:
            raise self._typed_error(config, faults)
        fields = fieldset.without(fields_of(self.node, config), self.ignored)
        return Applied(config, fields, fieldset.difference(fields, _STRIPPED))

    def apply(self, live: Json | None, applied: Applied, manager: str, now: str, *, force: bool) -> Json | None:
        """Server-side apply: the merged object with its entries, or None if nothing at all changes.

        The result may share parts with `live` and the configuration.
        """
        current = self._bare(live)
        managed = read((live or {}).get("metadata", {}).get("managedFields"), ours=True) or Managed()
        if not managed.fields and live is not None:
            before = identity("before-first-apply", "Update", self.version, self.subresource)
            self._update(self.empty, current, managed, before, now)
            known = None
        else:
            known = managed.fields
        result = self._apply(current, applied, managed, manager, now, force=force)
        if manager == "kubectl" and lastapplied.annotation_of(result):
            result = lastapplied.refreshed(result, applied.config)
        if live is not None and managed.fields == known and same(result, current):
            return None
        entries = write(managed)
        metadata = result["metadata"] = dict(result.get("metadata") or {})
        if entries:
            metadata["managedFields"] = entries
        return result

    def _typed_error(self, config: Json, faults: list[str]) -> StatusError:
        metadata = config.get("metadata") or {}
        group, _, version = self.version.rpartition("/")
        where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {group}/{version}, Kind={self.kind}"
        text = faults[0] if len(faults) == 1 else "errors:\n" + "\n".join(f"  {fault}" for fault in faults)
        # The real server answers 500 here; the fault is the client's, so this one says 400.
        return bad_request(f"failed to create typed patch object ({where}): {text}")

    def _apply(self, live: Json, applied: Applied, managed: Managed, manager: str, now: str, *, force: bool) -> Json:
        key = identity(manager, "Apply", self.version, self.subresource)

        def run(force: bool) -> tuple[Json, dict[str, Owned]]:
            return apply(
                self.node,
                live,
                applied.config,
                applied.fields,
                applied.stored,
                self.version,
                managed.fields,
                key,
                force=force,
                ignored=self.ignored,
            )

        try:
            result, fields = run(force)
        except Conflicts as found:
            left = found.by_manager
            if manager == "kubectl":
                allowed = lastapplied.allowed_conflicts(self.node, live, self.version)
                left = {name: fieldset.difference(subset, allowed) for name, subset in left.items()}
                left = {name: subset for name, subset in left.items() if subset}
            if left:
                raise _conflict(left) from None
            result, fields = run(True)
        mine = fields.get(key)
        if mine is not None:
            kept = applied.stored if mine.fields is applied.fields else fieldset.difference(mine.fields, _STRIPPED)
            if kept:
                fields[key] = mine._replace(fields=kept)
            else:
                del fields[key]
        managed.fields = fields
        if not same(result, live):
            managed.times[key] = now
        return result


def _replicas(obj: Any, path: tuple[str, ...]) -> int:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, int) else 0


def _cap(managed: Managed) -> None:
    """At most ten updaters: the oldest are joined under one name, by version."""
    updaters = [key for key, owned in managed.fields.items() if not owned.applied]
    if len(updaters) <= MAX_UPDATERS:
        return
    updaters.sort(key=lambda key: (managed.times.get(key, ""), key))
    count = len(updaters)
    first: dict[str, str] = {}
    for key in updaters:
        if count <= MAX_UPDATERS:
            return
        owned = managed.fields[key]
        bucket = identity("ancient-changes", "Update", owned.version, "")
        if owned.version not in first:
            first[owned.version] = key
            continue
        if bucket not in managed.fields:
            managed.fields[bucket] = managed.fields.pop(first[owned.version])
        joined = fieldset.union(owned.fields, managed.fields[bucket].fields)
        managed.fields[bucket] = Owned(joined, owned.version, False)
        del managed.fields[key]
        count -= 1
        if key in managed.times:
            managed.times[bucket] = managed.times[key]


def _conflict(by_manager: dict[str, FieldSet]) -> StatusError:
    found = [(key, fieldset.text(path)) for key in sorted(by_manager) for path in fieldset.paths(by_manager[key])]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_shown(key)}", "field": path}
        for key, path in found
    ]
    if len(found) == 1:
        text = f"Apply failed with 1 conflict: conflict with {_shown(found[0][0])}: {found[0][1]}"
    else:
        lines: list[str] = []
        for key in sorted(by_manager):
            lines.append(f"conflicts with {_shown(key)}:")
            lines += [f"- {path}" for owner, path in found if owner == key]
        text = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return StatusError(409, text, details={"causes": causes})


def _shown(key: str) -> str:
    who = parts(key)
    text = f'"{who.manager}"'
    if who.subresource:
        text += f' with subresource "{who.subresource}"'
    return text + (f" using {who.version}" if who.operation == "Update" else "")


def refuse_managed_fields(config: Json) -> None:
    if (config.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
