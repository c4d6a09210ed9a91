"""kubectl's last-applied annotation: it lets an object move from client-side to server-side apply without conflicts."""

from __future__ import annotations

import json

from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.comparison import compare
from trainwright.embedded.apiserver.fieldmanager.fields import fields_of
from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.embedded.apiserver.fieldmanager.nodes import Node
from trainwright.schema.jsonobject import Json

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
LIMIT = 256 * 1024


def annotation_of(obj: Json) -> str:
    found = (obj.get("metadata", {}).get("annotations") or {}).get(ANNOTATION)
    return found if isinstance(found, str) else ""


def allowed_conflicts(node: Node, live: Json, version: str) -> FieldSet:
    """The fields that kubectl set by client-side apply and nobody changed since: kubectl may take them over."""
    text = annotation_of(live)
    if not text:
        return {}
    try:
        applied = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(applied, dict) or applied.get("apiVersion") != version:
        return {}
    fields = fields_of(node, applied)
    comparison = compare(node, applied, live)
    for part in (comparison.modified, comparison.added, comparison.removed):
        fields = fieldset.difference(fields, part)
    return fields


def refreshed(obj: Json, config: Json) -> Json:
    """The object with the annotation set to what kubectl applies, so that client-side apply still works afterwards."""
    copy = {**config, "metadata": dict(config.get("metadata") or {})}
    annotations = dict(copy["metadata"].get("annotations") or {})
    annotations.pop(ANNOTATION, None)
    if annotations:
        copy["metadata"]["annotations"] = annotations
    else:
        copy["metadata"].pop("annotations", None)
    text = json.dumps(copy, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    live = dict(obj["metadata"].get("annotations") or {})
    live[ANNOTATION] = text if sum(len(k) + len(v) for k, v in {**live, ANNOTATION: text}.items()) <= LIMIT else ""
    return {**obj, "metadata": {**obj["metadata"], "annotations": live}}
