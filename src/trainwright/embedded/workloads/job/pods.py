"""Builds the pods of a Job.

Names are `<job>-<index>-<5 characters>`, or `<job>-<5 characters>` without an index. The characters are a function of
the Job's uid, the index and the attempt, so that a creation can be repeated: a controller that does not see its own
pod yet makes the same name again, and the server answers that it exists.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Collection
from typing import NamedTuple

from trainwright.api.metadata import controller_reference
from trainwright.api.resources import JOBS
from trainwright.api.wellknown import COMPLETION_INDEX
from trainwright.embedded.workloads.job.accounting import FINALIZER
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json

INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"

REFUSED = "PodRefused"
"""The reason of a Job whose pods this machine refuses: to try again would end in the same way."""

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX = 58


def pod_name(job: ApiObject, index: int | None, taken: Collection[str]) -> str:
    """The first name of this Job and index that no known pod has."""
    prefix = f"{job.name}-" if index is None else f"{job.name}-{index}-"
    if len(prefix) > _LONGEST_PREFIX:
        ending = "-" if index is None else f"-{index}-"
        prefix = prefix[: _LONGEST_PREFIX - len(ending)] + ending
    attempt = 0
    while True:
        digest = hashlib.sha256(f"{job.metadata.uid}/{index}/{attempt}".encode()).digest()
        name = prefix + "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:5])
        if name not in taken:
            return name
        attempt += 1


class IndexFailures(NamedTuple):
    """How often an index has failed: as it counts, and as the pod failure policy ignores."""

    counted: int = 0
    ignored: int = 0


def index_of(pod: ApiObject) -> int | None:
    return _number(pod, COMPLETION_INDEX)


def failures_before(pod: ApiObject) -> IndexFailures:
    """The failures of its index before this pod, as they are written on it."""
    return IndexFailures(_number(pod, INDEX_FAILURES) or 0, _number(pod, INDEX_IGNORED_FAILURES) or 0)


def _number(pod: ApiObject, annotation: str) -> int | None:
    text = pod.metadata.annotation(annotation)
    return int(text) if text is not None and text.isdecimal() else None


def refusal(pod: ApiObject) -> str | None:
    """Why this machine refused the pod, if it did: another pod of the same spec would be refused as well."""
    reason = str(pod.status.get("reason") or "")
    if reason == "NotSupported" or reason.startswith("OutOf"):
        return str(pod.status.get("message") or reason)
    return None


def build(job: ApiObject, index: int | None, name: str, failures: IndexFailures | None = None) -> Json:
    """The pod to create. `failures` of its index are written on it if the Job counts them for each index."""
    template: Json = copy.deepcopy(job.spec.get("template") or {})
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels = {**(metadata.get("labels") or {}), **owner_labels(job)}
    annotations = dict(metadata.get("annotations") or {})
    if index is not None:
        labels[COMPLETION_INDEX] = annotations[COMPLETION_INDEX] = str(index)
        spec["hostname"] = f"{job.name}-{index}"
        if failures is not None:
            annotations[INDEX_FAILURES] = str(failures.counted)
            if failures.ignored:
                annotations[INDEX_IGNORED_FAILURES] = str(failures.ignored)
        for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
            _add_index_variable(container)
    if _mounts_a_token(spec):
        spec.setdefault("serviceAccountName", "default")  # in a cluster an admission plugin does this
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": name[:-5],
            "namespace": job.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "finalizers": list(dict.fromkeys([*(metadata.get("finalizers") or ()), FINALIZER])),
            "ownerReferences": [controller_reference(JOBS, job.metadata)],
        },
        "spec": spec,
    }


def owner_labels(job: ApiObject) -> dict[str, str]:
    """The labels by which a Job's pods are found."""
    uid, name = job.metadata.uid, job.name
    return {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }


def _mounts_a_token(spec: Json) -> bool:
    sources = [source for v in spec.get("volumes") or () for source in (v.get("projected") or {}).get("sources") or ()]
    return any("serviceAccountToken" in source for source in sources)


def _add_index_variable(container: Json) -> None:
    variables = container.setdefault("env", [])
    if all(variable.get("name") != INDEX_VARIABLE for variable in variables):
        path = f"metadata.labels['{COMPLETION_INDEX}']"
        variables.append({"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}})
