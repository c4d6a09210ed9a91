"""When two children mean the same: what carries no meaning is taken away before they are compared.

Empty maps and lists, the spelling of quantities, the order of volumes, mounts and ports, owner UIDs, key material, the
text of Flux's scripts, our own labels of ownership, and the variables that only Open MPI 5 reads (deviation D9) do not
count. The order of environment variables does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity

UNORDERED = {"volumes": "name", "volumeMounts": "mountPath", "ports": "containerPort", "imagePullSecrets": "name"}
QUANTITIES = ("limits", "requests", "minResources")
OURS = ("app.kubernetes.io/managed-by", "trainer.kubeflow.org/trainjob-name", "trainer.kubeflow.org/runtime-revision")


def keyed(objects: Iterable[Json], *, namespace: str, ordered_env: bool) -> dict[str, Json]:
    """Comparable children by kind and name; `namespace` is the one they were made in."""
    return {
        f"{item['kind']}/{item['metadata']['name']}": comparable(item, namespace, ordered_env)
        for item in objects
        if not is_revision(item)
    }


def is_revision(item: Json) -> bool:
    """The runtime as it was: kept in another way than the reference keeps it (deviation D25)."""
    return bool(item["kind"] == "ControllerRevision" or item["metadata"]["name"].endswith("-runtime-snapshot"))


def comparable(item: Json, namespace: str, ordered_env: bool) -> Json:
    item = json.loads(json.dumps(item).replace(namespace, "<namespace>"))
    metadata = item["metadata"]
    metadata.pop("namespace", None)
    for owner in metadata.get("ownerReferences", []):
        owner["uid"] = "<uid>"
    for name in OURS:
        metadata.get("labels", {}).pop(name, None)
        metadata.get("annotations", {}).pop(name, None)
    data = item.get("data") or {}
    if item["kind"] == "Secret":
        item["data"] = dict.fromkeys(data, "<generated>")
        if item.get("type") == "Opaque":  # the default, which whoever creates a Secret comes to own
            del item["type"]
    elif item["kind"] == "ConfigMap" and metadata["name"].endswith("-flux-entrypoint"):
        item["data"] = dict.fromkeys(data, "<script>")
    elif "ca.crt" in data:
        data["ca.crt"] = "<generated>"
    plain: Json = _plain(item, "", ordered_env)
    return plain


def env_order_is_chance(documents: Iterable[Json]) -> bool:
    """The reference runs two plugins over XGBoost and Flux jobs in an order that changes from start to start."""
    policies = [document.get("spec", {}).get("mlPolicy") or {} for document in documents]
    return any("xgboost" in policy or "flux" in policy for policy in policies)


def _plain(node: Any, key: str, ordered_env: bool) -> Any:
    if isinstance(node, dict):
        if node.get("name") == "KUBEFLOW_TRAINER_SERVER_URL":
            return {**node, "value": re.sub(r"^https://[^/]*", "https://<service>", node["value"])}
        if key in QUANTITIES:
            return {name: f"{parse_quantity(value).nano}n" for name, value in node.items()}
        if key == "volumeClaimPolicies":  # an atomic list: what we own there includes what JobSet's CRD defaults in it
            node = {"retentionPolicy": {"whenDeleted": "Delete"}, **node}
        out = {name: _plain(value, name, ordered_env) for name, value in node.items()}
        return {name: value for name, value in out.items() if value not in (None, {}, [])}
    if isinstance(node, list):
        kept = [value for value in node if key != "env" or not value["name"].startswith(("PRTE_MCA_", "PMIX_MCA_"))]
        items = [_plain(value, key if key == "volumeClaimPolicies" else "", ordered_env) for value in kept]
        if key in UNORDERED:
            items.sort(key=lambda item: str(item.get(UNORDERED[key])))
        elif key == "env" and not ordered_env:
            items.sort(key=lambda item: str(item["name"]))
        return items
    return node
