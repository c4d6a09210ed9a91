"""JobSets that JobSet's webhooks accept or refuse: more than a hundred ways to write one, and changes of it.

In: nothing. Out: `cases()`, each with what to create first, the JobSet, and perhaps a merge patch for it. `record.py`
asks the real webhooks and keeps their answers; the tests ask ours.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainwright.schema.jsonobject import Json

CONTAINER: Json = {"name": "c", "image": "none"}


@dataclass(frozen=True)
class Case:
    """One question. `gates`: RestartJob and ElasticJobSet are on. `claim` exists beforehand."""

    name: str
    job_set: Json
    patch: Json | None = None
    gates: bool = False
    claim: Json | None = None


def replicated(name: str = "node", replicas: int | None = None, pod: Json | None = None, **more: Any) -> Json:
    fields = ("parallelism", "completions", "completionMode", "backoffLimit")
    job: Json = {key: more.pop(key) for key in fields if key in more}
    template = {"spec": {**job, "template": {"spec": {"containers": [CONTAINER], **(pod or {})}}}}
    made: Json = {"name": name, "template": template, **more}
    return made if replicas is None else {**made, "replicas": replicas}


def job_set(*replicated_jobs: Json, name: str = "js", **spec: Any) -> Json:
    metadata: Json = {"name": name}
    if "annotations" in spec:
        metadata["annotations"] = spec.pop("annotations")
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {"replicatedJobs": list(replicated_jobs) or [replicated()], **spec},
    }


def rule(action: str = "RestartJobSet", **more: Any) -> Json:
    return {"action": action, **more}


def cases() -> Iterator[Case]:
    yield from _plain()
    yield from _names()
    yield from _network()
    yield from _managers()
    yield from _depends()
    yield from _success()
    yield from _failure()
    yield from _coordinators()
    yield from _claims()
    yield from _changes()
    yield from _elastic()


def _plain() -> Iterator[Case]:
    yield Case("plain", job_set())
    yield Case("two", job_set(replicated("a"), replicated("b", 3)))
    yield Case("non-indexed", job_set(replicated(completionMode="NonIndexed")))
    yield Case("restart-policy", job_set(replicated(pod={"restartPolicy": "Never"})))
    yield Case("no-replicated-jobs", {**job_set(), "spec": {"replicatedJobs": []}})
    yield Case("empty-spec", {**job_set(), "spec": {}})
    yield Case("in-order", job_set(startupPolicy={"startupPolicyOrder": "InOrder"}))
    yield Case("bad-order", job_set(startupPolicy={"startupPolicyOrder": "Backwards"}))
    yield Case("suspended", job_set(suspend=True))
    yield Case("ttl", job_set(ttlSecondsAfterFinished=5))
    yield Case("negative-ttl", job_set(ttlSecondsAfterFinished=-1))
    yield Case("exclusive", job_set(annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "zone"}))
    yield Case("same-names", job_set(replicated("a"), replicated("a")))
    yield Case("nulls", job_set(successPolicy=None, network=None, suspend=None))
    yield Case("no-template", job_set({"name": "node"}))
    yield Case("no-name", job_set({"template": replicated()["template"]}))
    for replicas in (0, 1, 100, -1):
        yield Case(f"replicas-{replicas}", job_set(replicated(replicas=replicas)))
    for count in (2**31 - 1, 2**30):
        yield Case(f"product-{count}", job_set(replicated("node", 2, parallelism=count)))
    yield Case("product-of-two", job_set(replicated("a", 2**20, parallelism=2**12), replicated("b", 2)))


def _names() -> Iterator[Case]:
    for length in (20, 55, 57, 58, 60, 63):
        yield Case(f"name-{length}", job_set(name="n" * length))
        yield Case(f"replicated-name-{length}", job_set(replicated("r" * length)))
    for length in (40, 45, 50):
        yield Case(
            f"pod-name-{length}", job_set(replicated("node", 12, completions=2000, parallelism=1), name="n" * length)
        )
    for name in ("1js", "js-1", "a.b", "Upper"):
        yield Case(f"name-{name.lower().replace('.', '-')}", job_set(name=name))
    for number, name in enumerate(("1", "a_b", "Upper", "-a", "a.b")):
        yield Case(f"replicated-{number}", job_set(replicated(name)))
    for number, name in enumerate(("group", "1group", "Group", "g" * 63, "g" * 64, "a.b", "")):
        yield Case(f"group-{number}", job_set(replicated(groupName=name)))


def _network() -> Iterator[Case]:
    for number, subdomain in enumerate(
        ("net", "n" * 63, "n" * 64, "n" * 254, "1net", "a.b", "Net", "net_", "-net", "")
    ):
        yield Case(f"subdomain-{number}", job_set(network={"subdomain": subdomain}))
    yield Case("no-dns", job_set(network={"enableDNSHostnames": False}))
    yield Case("not-published", job_set(network={"publishNotReadyAddresses": False, "subdomain": "net"}))


def _managers() -> Iterator[Case]:
    own = "jobset.sigs.k8s.io/jobset-controller"
    bad = ("other", "a/", "/b", "Upper.io/x", "acme.io/" + "x" * 60, "acme.io/a b", "acme.io/a/b", "", "_/x")
    for number, manager in enumerate((own, "acme.io/foo", *bad)):
        yield Case(f"manager-{number}", job_set(managedBy=manager))


def _depends() -> Iterator[Case]:
    on: Json = {"name": "a", "status": "Complete"}
    yield Case("depends", job_set(replicated("a"), replicated("b", dependsOn=[on])))
    yield Case("depends-first", job_set(replicated("a", dependsOn=[{"name": "b", "status": "Ready"}]), replicated("b")))
    yield Case("depends-empty", job_set(replicated("a", dependsOn=[]), replicated("b")))
    later = {"name": "c", "status": "Ready"}
    yield Case("depends-later", job_set(replicated("a"), replicated("b", dependsOn=[later]), replicated("c")))
    yield Case("depends-unknown", job_set(replicated("a"), replicated("b", dependsOn=[{**on, "name": "x"}])))
    yield Case("depends-itself", job_set(replicated("a"), replicated("b", dependsOn=[{**on, "name": "b"}])))
    yield Case("depends-status", job_set(replicated("a"), replicated("b", dependsOn=[{**on, "status": "Done"}])))
    yield Case("depends-twice", job_set(replicated("a"), replicated("b", dependsOn=[on, on])))
    order = {"startupPolicyOrder": "InOrder"}
    yield Case("depends-in-order", job_set(replicated("a"), replicated("b", dependsOn=[on]), startupPolicy=order))


def _success() -> Iterator[Case]:
    for operator in ("All", "Any", "Some"):
        yield Case(f"success-{operator.lower()}", job_set(successPolicy={"operator": operator}))
    yield Case("success-empty", job_set(successPolicy={}))
    for targets in (["node"], ["x"], ["x", "node", "y"], []):
        policy = {"operator": "All", "targetReplicatedJobs": targets}
        yield Case(f"success-targets-{'-'.join(targets) or 'none'}", job_set(successPolicy=policy))


def _failure() -> Iterator[Case]:
    for number, policy in enumerate(
        (
            {},
            {"maxRestarts": 3},
            {"maxRestarts": -1},
            {"restartStrategy": "Recreate"},
            {"restartStrategy": "BlockingRecreate"},
            {"restartStrategy": "InPlaceRestart"},
            {"restartStrategy": "Never"},
            {"rules": []},
            {"rules": [rule()]},
            {"rules": [rule(), rule("FailJobSet"), rule("RestartJobSetAndIgnoreMaxRestarts")]},
            {"rules": [rule("Explode")]},
            {"rules": [rule(name="a"), rule(name="a")]},
            {"rules": [rule(name="a"), rule(name="b"), rule(name="a")]},
            {"rules": [rule(name="failurePolicyRule1"), rule()]},
            {"rules": [rule(name="1a")]},
            {"rules": [rule(name="a:")]},
            {"rules": [rule(name="a b")]},
            {"rules": [rule(name="a" * 128)]},
            {"rules": [rule(name="a" * 129)]},
            {"rules": [rule(name="")]},
            {"rules": [rule(targetReplicatedJobs=["node"])]},
            {"rules": [rule(targetReplicatedJobs=["x"])]},
            {"rules": [rule(onJobFailureReasons=["BackoffLimitExceeded", "PodFailurePolicy"])]},
            {"rules": [rule(onJobFailureReasons=["Boredom"])]},
            {"rules": [rule(onJobFailureReasons=["Boredom", "DeadlineExceeded"], targetReplicatedJobs=["x"])]},
            {"rules": [rule(onJobFailureMessagePatterns=["^a.*"])]},
            {"rules": [rule(onJobFailureMessagePatterns=["("])]},
            {"rules": [rule("RestartJob")]},
            {"rules": [rule("RestartJobAndIgnoreMaxRestarts"), rule(name="1")]},
            {"rules": [rule()] * 21},
        )
    ):
        yield Case(f"failure-{number}", job_set(failurePolicy=policy))
    for number, action in enumerate(("RestartJob", "RestartJobAndIgnoreMaxRestarts")):
        policy = {"rules": [rule(action)]}
        yield Case(f"restart-job-{number}", job_set(failurePolicy=policy), gates=True)
        yield Case(f"restart-many-{number}", job_set(replicated("node", 1025), failurePolicy=policy), gates=True)
        yield Case(f"restart-most-{number}", job_set(replicated("node", 1024), failurePolicy=policy), gates=True)


def _coordinators() -> Iterator[Case]:
    indexed = replicated("node", 2, completions=3, parallelism=3)
    for number, coordinator in enumerate(
        (
            {"replicatedJob": "node"},
            {"replicatedJob": "node", "jobIndex": 1, "podIndex": 2},
            {"replicatedJob": "node", "jobIndex": 2},
            {"replicatedJob": "node", "jobIndex": -1},
            {"replicatedJob": "node", "podIndex": 3},
            {"replicatedJob": "x"},
            {},
        )
    ):
        yield Case(f"coordinator-{number}", job_set(indexed, coordinator=coordinator))
    yield Case("coordinator-no-completions", job_set(coordinator={"replicatedJob": "node"}))
    loose = replicated(completions=3, completionMode="NonIndexed")
    yield Case("coordinator-loose", job_set(loose, coordinator={"replicatedJob": "node"}))
    yield Case("coordinator-long", job_set(indexed, name="n" * 40, coordinator={"replicatedJob": "node"}))
    network = {"subdomain": "n" * 60}
    yield Case("coordinator-net", job_set(indexed, network=network, coordinator={"replicatedJob": "node"}))


SIZE: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def claims(*names: str, kept: str | None = None) -> list[Json]:
    policy: Json = {"templates": [{"metadata": {"name": name}, "spec": SIZE} for name in names]}
    return [{**policy, "retentionPolicy": {"whenDeleted": kept}} if kept else policy]


def mounting(*names: str, init: bool = False, volumes: list[Json] | None = None) -> Json:
    container = {**CONTAINER, "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in names]}
    pod: Json = {"initContainers": [container]} if init else {"containers": [container]}
    return replicated(pod={**pod, **({"volumes": volumes} if volumes else {})})


def _claims() -> Iterator[Case]:
    yield Case("claim", job_set(mounting("data"), volumeClaimPolicies=claims("data")))
    yield Case("claim-retained", job_set(mounting("data"), volumeClaimPolicies=claims("data", kept="Retain")))
    yield Case("claim-kept-how", job_set(mounting("data"), volumeClaimPolicies=claims("data", kept="Perhaps")))
    yield Case("claim-init", job_set(mounting("data", init=True), volumeClaimPolicies=claims("data")))
    yield Case("claim-two", job_set(mounting("a", "b"), volumeClaimPolicies=claims("a", "b")))
    yield Case("claim-twice", job_set(mounting("a"), volumeClaimPolicies=claims("a", "a")))
    yield Case("claim-unmounted", job_set(volumeClaimPolicies=claims("data")))
    yield Case("claim-name", job_set(mounting("Data"), volumeClaimPolicies=claims("Data")))
    yield Case("claim-long", job_set(mounting("d" * 61), volumeClaimPolicies=claims("d" * 61)))
    yield Case("claim-longest", job_set(mounting("d" * 60), volumeClaimPolicies=claims("d" * 60)))
    clash = mounting("data", volumes=[{"name": "data", "emptyDir": {}}])
    yield Case("claim-clash", job_set(clash, volumeClaimPolicies=claims("data")))
    there = {"metadata": {"name": "data-js"}, "spec": SIZE}
    yield Case("claim-there", job_set(mounting("data"), volumeClaimPolicies=claims("data")), claim=there)
    retained = job_set(mounting("data"), volumeClaimPolicies=claims("data", kept="Retain"))
    yield Case("claim-there-retained", retained, claim=there)
    same = copy.deepcopy(retained)
    same["spec"]["volumeClaimPolicies"][0]["templates"][0]["spec"] = {**SIZE, "volumeMode": "Filesystem"}
    yield Case("claim-there-same", same, claim=there)


def _changes() -> Iterator[Case]:
    base, asleep = job_set(replicated("a"), replicated("b")), job_set(replicated("a"), replicated("b"), suspend=True)
    more = [replicated("a"), replicated("b"), replicated("c")]
    selected = [replicated("a", pod={"nodeSelector": {"x": "y"}}), replicated("b")]
    tolerating = [replicated("a", pod={"tolerations": [{"key": "k", "operator": "Exists"}]}), replicated("b")]
    gated = [replicated("a", pod={"schedulingGates": [{"name": "g.io/x"}]}), replicated("b")]
    labelled = copy.deepcopy(more[:2])
    labelled[0]["template"]["spec"]["template"]["metadata"] = {"labels": {"x": "y"}, "annotations": {"x": "y"}}
    other = [replicated("a", pod={"containers": [{**CONTAINER, "image": "other"}]}), replicated("b")]
    wider = [replicated("a", parallelism=4, completions=4), replicated("b")]
    patches: dict[str, Json] = {
        "suspend": {"suspend": True},
        "resume": {"suspend": False},
        "ttl": {"ttlSecondsAfterFinished": 9},
        "more": {"replicatedJobs": more},
        "fewer": {"replicatedJobs": more[:1]},
        "swapped": {"replicatedJobs": [more[1], more[0]]},
        "selector": {"replicatedJobs": selected},
        "tolerations": {"replicatedJobs": tolerating},
        "gates": {"replicatedJobs": gated},
        "labels": {"replicatedJobs": labelled},
        "image": {"replicatedJobs": other},
        "wider": {"replicatedJobs": wider},
        "replicas": {"replicatedJobs": [replicated("a", 2), replicated("b")]},
        "manager": {"managedBy": "acme.io/foo"},
        "success": {"successPolicy": {"operator": "Any"}},
        "failure": {"failurePolicy": {"maxRestarts": 3}},
        "network": {"network": {"subdomain": "other"}},
        "coordinator": {"coordinator": {"replicatedJob": "a"}},
    }
    for name, patch in patches.items():
        yield Case(f"change-{name}", base, {"spec": patch})
        yield Case(f"change-asleep-{name}", asleep, {"spec": patch})
    for name in ("selector", "image"):
        yield Case(f"change-falling-asleep-{name}", base, {"spec": {**patches[name], "suspend": True}})
    yield Case("change-metadata", base, {"metadata": {"labels": {"x": "y"}}})


def _elastic() -> Iterator[Case]:
    base = job_set(replicated(parallelism=2, completions=2))
    loose = job_set(replicated(parallelism=2, completions=2, completionMode="NonIndexed"))
    for number, (parallelism, completions) in enumerate(((4, 4), (1, 1), (0, 0), (4, 2), (2, 4), (-1, -1))):
        patch = {"spec": {"replicatedJobs": [replicated(parallelism=parallelism, completions=completions)]}}
        yield Case(f"elastic-{number}", base, patch, gates=True)
    wider = [replicated(parallelism=4, completions=4, completionMode="NonIndexed")]
    yield Case("elastic-loose", loose, {"spec": {"replicatedJobs": wider}}, gates=True)
    both = [replicated(parallelism=4, completions=4, backoffLimit=1)]
    yield Case("elastic-and-more", base, {"spec": {"replicatedJobs": both}}, gates=True)
