"""volumeClaimPolicies: PersistentVolumeClaims `<template>-<jobset>`, and the volumes by which pods mount them."""

from __future__ import annotations

import copy

from trainwright.api.metadata import controller_reference
from trainwright.api.resources import JOB_SETS
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json


def claim_name(job_set: str, template: Json) -> str:
    return f"{(template.get('metadata') or {}).get('name', '')}-{job_set}"


def claims(job_set: ApiObject, spec: Json) -> list[Json]:
    """The claims to create. Those of a policy `Delete` go with the JobSet, those of `Retain` have no owner."""
    made = []
    for policy in spec.get("volumeClaimPolicies") or ():
        for template in policy.get("templates") or ():
            metadata = template.get("metadata") or {}
            claim: Json = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": claim_name(job_set.name, template),
                    "namespace": job_set.metadata.namespace,
                    "labels": {**(metadata.get("labels") or {}), JOBSET_NAME: job_set.name},
                },
                "spec": copy.deepcopy(template.get("spec") or {}),
            }
            if metadata.get("annotations"):
                claim["metadata"]["annotations"] = dict(metadata["annotations"])
            if (policy.get("retentionPolicy") or {}).get("whenDeleted") == "Delete":
                claim["metadata"]["ownerReferences"] = [controller_reference(JOB_SETS, job_set.metadata)]
            made.append(claim)
    return made


def add_volumes(pod: Json, job_set: ApiObject, spec: Json) -> None:
    """Adds the volume of each claim that a container of the pod's spec mounts by its template's name."""
    containers = (pod.get("containers") or []) + (pod.get("initContainers") or [])
    mounted = {mount.get("name") for container in containers for mount in container.get("volumeMounts") or ()}
    for policy in spec.get("volumeClaimPolicies") or ():
        for template in policy.get("templates") or ():
            name = (template.get("metadata") or {}).get("name")
            if name in mounted:
                claim = {"claimName": claim_name(job_set.name, template)}
                pod["volumes"] = [*(pod.get("volumes") or []), {"name": name, "persistentVolumeClaim": claim}]
