"""Compare children stored on a real control plane with recorded ones.

tests/conformance/check.py says what carries no meaning. Stored objects add three more: the namespace of the test, the
default type of a Secret, and a default in a list that one manager owns as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from conformance import check
from trainwright.schema.jsonobject import Json


def keyed(objects: Iterable[Json], *, namespace: str, ordered_env: bool) -> dict[str, Json]:
    """Comparable children by kind and name; `namespace` is the one they were made in."""
    found = check.keyed(_as_recorded(item, namespace) for item in objects)
    return found if ordered_env else check.sort_env(found)


def _as_recorded(item: Json, namespace: str) -> Json:
    item = json.loads(json.dumps(item).replace(namespace, "<namespace>"))
    if item["kind"] == "Secret" and item.get("type") == "Opaque":  # the manager that creates a Secret owns this default
        del item["type"]
    if item["kind"] == "JobSet":
        # An atomic list: our manager owns the default that JobSet's CRD fills in.
        policies: list[dict[str, Any]] = item["spec"].get("volumeClaimPolicies") or []
        for policy in policies:
            policy.setdefault("retentionPolicy", {"whenDeleted": "Delete"})
    return item
