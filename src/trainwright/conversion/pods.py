"""The pods that the objects of a TrainJob lead to.

In: a JobSet as the pipeline renders it. Out: every pod with its host name, labels and spec, env sources that name its
index resolved and `$(NAME)` references expanded, as JobSet, the Job controller and a kubelet do together.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainwright.api.wellknown import COMPLETION_INDEX
from trainwright.conversion.layout import GLOBAL_INDEX, Place
from trainwright.schema.expansion import expand
from trainwright.schema.jsonobject import Json

_SUBSCRIPT = re.compile(r"metadata\.(?:labels|annotations)\['([^']*)'\]")


@dataclass(frozen=True, slots=True)
class Pod:
    place: Place
    host: str
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Json


def pods_of(jobset: Json) -> Iterator[Pod]:
    name = jobset["metadata"]["name"]
    subdomain = (jobset["spec"].get("network") or {}).get("subdomain") or name
    before = 0
    for item in jobset["spec"]["replicatedJobs"]:
        spec, replicas = item["template"]["spec"], item.get("replicas", 1)
        metadata = spec["template"].get("metadata") or {}
        for job in range(replicas):
            for pod in range(spec.get("parallelism", 1)):
                indexes = {COMPLETION_INDEX: str(pod), GLOBAL_INDEX: str(before + job)}
                yield Pod(
                    Place(item["name"], job, pod),
                    f"{name}-{item['name']}-{job}-{pod}.{subdomain}",
                    {**(metadata.get("labels") or {}), **indexes},
                    dict(metadata.get("annotations") or {}),
                    _resolved(spec["template"]["spec"], indexes),
                )
        before += replicas


def _resolved(spec: Json, indexes: dict[str, str]) -> Json:
    spec = copy.deepcopy(spec)
    for container in [*spec["containers"], *(spec.get("initContainers") or ())]:
        if container.get("env"):
            container["env"] = resolve(container["env"], indexes)
    return spec


def resolve(env: list[Json], indexes: dict[str, str]) -> list[Json]:
    """Variables with a value each, where that can be known before the pod exists."""
    known: dict[str, str] = {}
    result: list[Json] = []
    for entry in env:
        source = ((entry.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath") or ""
        match = _SUBSCRIPT.fullmatch(source)
        if match and match[1] in indexes:
            entry = {"name": entry["name"], "value": indexes[match[1]]}
        elif entry.get("valueFrom") is None:
            entry = {"name": entry["name"], "value": expand(entry.get("value") or "", known)}
        if "value" in entry:
            known[entry["name"]] = entry["value"]
        result.append(entry)
    return result
