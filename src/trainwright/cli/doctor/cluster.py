"""What `doctor` looks at in a cluster: whether a TrainJob created there would be taken, started and followed."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator

from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CUSTOM_RESOURCE_DEFINITIONS,
    JOB_SETS,
    LEASES,
    NODES,
    POD_GROUPS,
    PODS,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    VOLCANO_POD_GROUPS,
    Resource,
)
from trainwright.api.times import seconds_of
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.cli.doctor.finding import Finding, fail, ok, warn
from trainwright.client.client import Client
from trainwright.client.errors import ClientError, Forbidden, NotFound, ServerError, Unreachable
from trainwright.pipeline.reasons.sentences import name_of
from trainwright.schema.jsonobject import Json

REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATING = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
)
OPERATOR = "kubeflow-trainer-controller-manager"
JOBSET_NAMESPACE, JOBSET_OPERATOR = "jobset-system", "jobset-controller-manager"
STALE_SECONDS = 60.0
SOON_SECONDS = 30 * 86400.0
OLDEST = 29
RIGHTS = (
    ("create", TRAIN_JOBS, ""),
    ("get", TRAIN_JOBS, ""),
    ("list", TRAIN_JOBS, ""),
    ("watch", TRAIN_JOBS, ""),
    ("patch", TRAIN_JOBS, ""),
    ("delete", TRAIN_JOBS, ""),
    ("list", CLUSTER_TRAINING_RUNTIMES, ""),
    ("list", TRAINING_RUNTIMES, ""),
    ("list", JOB_SETS, ""),
    ("list", PODS, ""),
    ("get", PODS, "log"),
)
INSTALL = "install the operator: kubectl apply --server-side -k manifests/overlays/manager (docs/operator.md)"
WEBHOOK_AWAY = (
    f"is the operator alive, and its certificate valid? kubectl -n {SYSTEM_NAMESPACE} logs deployment/{OPERATOR}"
)
INSTALL_JOBSET = "install JobSet: kubectl apply --server-side -f its release's manifests.yaml"


async def look(client: Client, namespace: str, *, local: bool) -> AsyncIterator[Finding]:
    """All findings about a cluster."""
    try:
        version = await client.raw("/version")
    except Unreachable as error:
        yield fail("API server", str(error), "is the cluster up, and the address in the kubeconfig right?")
        return
    except ClientError as error:
        yield fail("API server", str(error), "renew your credentials: kubectl config view, then log in again")
        return
    yield _version(version)
    crds = await _crds(client)
    for resource in (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
        yield await _served(client, resource, crds, INSTALL)
    yield await _served(client, JOB_SETS, crds, INSTALL_JOBSET)
    yield await _rights(client, namespace)
    yield await _runtimes(client)
    for resource in (MUTATING, VALIDATING):
        yield await _webhooks(client, resource)
    yield await _rehearsal(client, namespace)
    yield await _operator(client, local=local)
    if not local:
        yield await _deployment(client, "JobSet controller", JOBSET_NAMESPACE, JOBSET_OPERATOR, INSTALL_JOBSET)
    yield await _nodes(client)
    yield _scheduling(crds)


def _version(version: Json) -> Finding:
    text = str(version.get("gitVersion") or "unknown version")
    minor = "".join(letter for letter in str(version.get("minor") or "") if letter.isdigit())
    if minor and int(minor) < OLDEST:
        return warn("API server", f"{text} is older than what is tested", f"update to Kubernetes 1.{OLDEST} or later")
    return ok("API server", text)


async def _crds(client: Client) -> dict[str, Json] | None:
    """The CRDs by name; None where the user may not see them."""
    try:
        found = (await client.list(CUSTOM_RESOURCE_DEFINITIONS)).items or []
    except ClientError:
        return None
    return {name_of(item): item for item in found}


async def _served(client: Client, resource: Resource, crds: dict[str, Json] | None, mend: str) -> Finding:
    what = f"{resource.kind}s"
    try:
        served = await client.raw(f"/apis/{resource.group}/{resource.version}")
        found = any(item["name"] == resource.plural for item in served.get("resources") or ())
    except ClientError:
        found = False
    if not found:
        crd = (crds or {}).get(f"{resource.plural}.{resource.group}")
        versions = [item["name"] for item in ((crd or {}).get("spec") or {}).get("versions") or ()]
        other = f"; it has {', '.join(versions)}" if versions else ""
        return fail(what, f"the cluster serves no {resource.kind} of {resource.version}{other}", mend)
    return ok(what, f"{resource.group}/{resource.version} is served")


async def _rights(client: Client, namespace: str) -> Finding:
    """Whether the user may do what the commands do."""

    async def may(verb: str, resource: Resource, subresource: str) -> bool:
        attributes = {
            "namespace": namespace if resource.namespaced else "",
            "verb": verb,
            "group": resource.group,
            "resource": resource.plural,
            "subresource": subresource,
        }
        body = {
            "apiVersion": REVIEWS.api_version,
            "kind": REVIEWS.kind,
            "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
        }
        answer = await client.create(REVIEWS, body)
        return bool((answer.get("status") or {}).get("allowed"))

    try:
        answers = await asyncio.gather(*(may(*right) for right in RIGHTS))
    except ClientError as error:
        return warn("rights", f"cannot be asked for: {error}", "ask for the right to create selfsubjectaccessreviews")
    missing = [
        f"{verb} {resource.plural}{f'/{sub}' if sub else ''}"
        for (verb, resource, sub), allowed in zip(RIGHTS, answers, strict=True)
        if not allowed
    ]
    if missing:
        return fail(
            "rights",
            f"you may not, in namespace {namespace}: {', '.join(missing)}",
            "ask the cluster's administrator for a Role with these rights, or choose another namespace with -n",
        )
    return ok("rights", f"all that the commands need in namespace {namespace}")


async def _runtimes(client: Client) -> Finding:
    try:
        found = sorted(name_of(item) for item in (await client.list(CLUSTER_TRAINING_RUNTIMES)).items or ())
    except ClientError as error:
        return warn("runtimes", str(error), "ask for the right to list clustertrainingruntimes")
    if not found:
        return warn("runtimes", "there are none", "install them: kubectl apply -k manifests/overlays/runtimes")
    return ok("runtimes", f"{len(found)}: {', '.join(found)}")


async def _webhooks(client: Client, resource: Resource) -> Finding:
    what = "validation" if resource is VALIDATING else "defaulting"
    try:
        items = (await client.list(resource)).items or []
    except Forbidden:
        return warn(what, "you may not see webhook configurations", "ask the cluster's administrator to run doctor")
    except ClientError as error:
        return warn(what, str(error), "try again")
    ours = [item for item in items if "trainer.kubeflow.org" in name_of(item)]
    hooks = [hook for item in ours for hook in item.get("webhooks") or ()]
    if not hooks:
        return warn(what, "no webhook judges TrainJobs: mistakes are found only when they run", INSTALL)
    bundles = [(hook.get("clientConfig") or {}).get("caBundle") or "" for hook in hooks]
    if not all(bundles):
        return fail(
            what,
            "a webhook has no caBundle: every TrainJob would be refused",
            f"the operator writes it; is it alive? kubectl -n {SYSTEM_NAMESPACE} logs deployment/{OPERATOR}",
        )
    return _certificates(what, bundles)


def _certificates(what: str, bundles: list[str]) -> Finding:
    """When the certificates that the API server trusts end."""
    from cryptography import x509

    mend = f"kubectl -n {SYSTEM_NAMESPACE} rollout restart deployment/{OPERATOR}: it renews its certificates"
    ends = []
    for bundle in dict.fromkeys(bundles):
        try:
            found = x509.load_pem_x509_certificates(base64.b64decode(bundle))
        except ValueError as error:
            return fail(what, f"the caBundle is not readable: {error}", mend)
        ends.append(max(item.not_valid_after_utc.timestamp() for item in found))
    left, end = min(ends) - time.time(), time.strftime("%Y-%m-%d", time.gmtime(min(ends)))
    if left <= 0:
        return fail(what, f"the webhooks' certificate authority ended on {end}", mend)
    if left < SOON_SECONDS:
        return warn(what, f"the webhooks' certificate authority ends on {end}", mend)
    return ok(what, f"webhooks are called; their certificate authority is valid until {end}")


async def _rehearsal(client: Client, namespace: str) -> Finding:
    """Whether a TrainJob would be taken: one is created in a dry run, webhooks included, and nothing stays."""
    try:
        runtimes = (await client.list(CLUSTER_TRAINING_RUNTIMES)).items or []
        if not runtimes:
            return ok("rehearsal", "not tried: there is no runtime to name")
        job = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"generateName": "doctor-"},
            "spec": {"runtimeRef": {"name": name_of(runtimes[0])}, "suspend": True},
        }
        await client.create(TRAIN_JOBS, job, namespace, dry_run=True)
    except ServerError as error:
        return fail("rehearsal", f"a TrainJob would be refused: {error}", WEBHOOK_AWAY)
    except ClientError as error:
        return fail("rehearsal", f"a TrainJob would be refused: {error}", "see the lines above")
    return ok("rehearsal", f"a TrainJob would be taken in namespace {namespace}")


async def _operator(client: Client, *, local: bool) -> Finding:
    """Whether the operator is alive: by its Lease, else by its Deployment."""
    try:
        leases = (await client.list(LEASES, SYSTEM_NAMESPACE)).items or []
    except ClientError:
        leases = []
    for lease in leases:
        spec = lease.get("spec") or {}
        if "trainer" in name_of(lease) and spec.get("renewTime"):
            age = time.time() - seconds_of(spec["renewTime"])
            if age > STALE_SECONDS:
                return fail(
                    "operator",
                    f"its Lease was renewed {age:.0f} s ago: no replica leads",
                    f"kubectl -n {SYSTEM_NAMESPACE} get pods; kubectl -n {SYSTEM_NAMESPACE} logs deployment/{OPERATOR}",
                )
            return ok("operator", f"{spec.get('holderIdentity') or 'a replica'} leads")
    if local:
        return ok("operator", "runs inside the local cluster's control plane")
    return await _deployment(client, "operator", SYSTEM_NAMESPACE, OPERATOR, INSTALL)


async def _deployment(client: Client, what: str, namespace: str, name: str, mend: str) -> Finding:
    try:
        found = await client.get(DEPLOYMENTS, name, namespace)
    except NotFound:
        return fail(what, f"there is no Deployment {name} in namespace {namespace}", mend)
    except ClientError as error:
        return warn(what, str(error), "ask the cluster's administrator to run doctor")
    status = found.get("status") or {}
    ready, wanted = int(status.get("availableReplicas") or 0), int((found.get("spec") or {}).get("replicas") or 0)
    if not ready:
        return fail(
            what, f"none of its {wanted} replicas is available", f"kubectl -n {namespace} describe deployment {name}"
        )
    return ok(what, f"{ready} of {wanted} replicas available in namespace {namespace}")


async def _nodes(client: Client) -> Finding:
    try:
        nodes = (await client.list(NODES)).items or []
    except ClientError as error:
        return warn("nodes", str(error), "no matter, unless jobs wait: ask the administrator whether nodes are ready")
    ready = [
        node
        for node in nodes
        if any(
            item["type"] == "Ready" and item["status"] == "True"
            for item in (node.get("status") or {}).get("conditions") or ()
        )
        and not (node.get("spec") or {}).get("unschedulable")
    ]
    gpus: dict[str, int] = {}
    for node in ready:
        for resource, amount in ((node.get("status") or {}).get("allocatable") or {}).items():
            if resource.endswith("/gpu") and str(amount).isdecimal():
                gpus[resource] = gpus.get(resource, 0) + int(amount)
    text = f"{len(ready)} of {len(nodes)} ready; " + (
        ", ".join(f"{amount} {resource}" for resource, amount in sorted(gpus.items())) or "no GPUs"
    )
    if not ready:
        return fail("nodes", text, "kubectl get nodes; kubectl describe node NAME")
    return ok("nodes", text)


def _scheduling(crds: dict[str, Json] | None) -> Finding:
    if crds is None:
        return ok("gang scheduling", "not known: you may not list CRDs")
    names = {
        f"{POD_GROUPS.plural}.{POD_GROUPS.group}": "coscheduling",
        f"{VOLCANO_POD_GROUPS.plural}.{VOLCANO_POD_GROUPS.group}": "Volcano",
        "workloads.kueue.x-k8s.io": "Kueue",
    }
    found = [title for name, title in names.items() if name in crds]
    return ok("gang scheduling", f"CRDs of {', '.join(found)}" if found else "none installed: pods start one by one")
