"""The CRDs of the projects we build on, as the embedded cluster serves them: whole schemas without their prose.

In: the directories of their Go modules. Out: CRD documents.
"""

from __future__ import annotations

import yaml

import gomodules
from trainwright.api.crds import without_descriptions
from trainwright.schema.jsonobject import Json

_SOURCES = {
    "jobsets": (gomodules.JOBSET, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
    "podgroups": (gomodules.SCHEDULER_PLUGINS, "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml"),
    "volcano-podgroups": (gomodules.VOLCANO, "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml"),
}


def crds() -> dict[str, Json]:
    """Each CRD by the name of its file."""
    found = {}
    for name, (module, path) in _SOURCES.items():
        crd: Json = yaml.safe_load((gomodules.directory(module) / path).read_text())
        found[name] = _clean(crd)
    _add_network_topology(found["volcano-podgroups"])
    return found


def _clean(crd: Json) -> Json:
    annotations = {
        key: value
        for key, value in (crd["metadata"].get("annotations") or {}).items()
        # Groups under k8s.io are refused without it.
        if key == "api-approved.kubernetes.io"
    }
    metadata = {"name": crd["metadata"]["name"], **({"annotations": annotations} if annotations else {})}
    spec = without_descriptions(crd["spec"])
    # Conversion webhooks and defaults of their own deployment are not ours to serve.
    spec.pop("conversion", None)
    return {"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": metadata, "spec": spec}


def _add_network_topology(crd: Json) -> None:
    """Volcano 1.10 does not know networkTopology yet; 1.11 and later have it in this shape."""
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"].setdefault(
            "networkTopology",
            {
                "type": "object",
                "properties": {
                    "highestTierAllowed": {"type": "integer", "default": 1},
                    "mode": {"type": "string", "default": "hard", "enum": ["hard", "soft"]},
                },
            },
        )
