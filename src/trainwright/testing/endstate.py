"""The end state of a test, with everything masked that may differ between two runs.

In: a REST client and a namespace. Out: the objects of a namespace as plain data that is equal for two runs with the
same end state: UIDs, versions, times, keys and the namespace's name are masked; other managers' fields are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from trainwright.schema.jsonobject import Json
from trainwright.testing.rest import Rest

COLLECTIONS = (
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs",
    "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "/apis/apps/v1/namespaces/{}/controllerrevisions",
    "/api/v1/namespaces/{}/configmaps",
    "/api/v1/namespaces/{}/secrets",
)

_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HIDDEN = ("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink")


def end_state(rest: Rest, namespace: str, collections: Iterable[str] = COLLECTIONS) -> dict[str, Json]:
    """Every object of the collections by kind and name, masked."""
    state = {}
    for path in collections:
        listed = rest.get(path.format(namespace))
        kind = str(listed["kind"]).removesuffix("List")
        for item in listed["items"]:
            state[f"{kind}/{item['metadata']['name']}"] = masked(item, kind, namespace)
    return state


def masked(item: Json, kind: str, namespace: str, manager: str = "trainer") -> Json:
    item = json.loads(_UID.sub("<uid>", json.dumps(item).replace(namespace, "<namespace>")))
    for key in _HIDDEN:
        item["metadata"].pop(key, None)
    ours = [entry for entry in item["metadata"].pop("managedFields", []) if entry["manager"] == manager]
    item["metadata"]["managedFields"] = sorted(({**entry, "time": "<time>"} for entry in ours), key=str)
    if kind == "Secret":
        item["data"] = dict.fromkeys(item.get("data", {}), "<generated>")
    without_times: Json = _without_times(item)
    return without_times


def _without_times(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_times(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_without_times(value) for value in node]
    return _TIME.sub("<time>", node) if isinstance(node, str) else node
