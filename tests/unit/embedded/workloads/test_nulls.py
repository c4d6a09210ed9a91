"""Every optional field of the kinds that the controllers read may be null or absent, and none of them raises."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.api.wellknown import COMPLETION_INDEX
from trainwright.embedded import manifests
from trainwright.embedded.workloads.features import Features
from trainwright.embedded.workloads.job import decision as job_decision
from trainwright.embedded.workloads.job import pods
from trainwright.embedded.workloads.job.expectations import Expectations
from trainwright.embedded.workloads.jobset import decision as jobset_decision
from trainwright.embedded.workloads.jobset import placement
from trainwright.embedded.workloads.jobset.changes import faults_of_change
from trainwright.embedded.workloads.jobset.defaults import admitted
from trainwright.embedded.workloads.jobset.failure_policy import GateOff
from trainwright.embedded.workloads.jobset.job_restarts import BadLabel
from trainwright.embedded.workloads.jobset.validation import faults_of_new
from trainwright.embedded.workloads.objects import ApiObject, without_nulls
from trainwright.embedded.workloads.scheduler.cluster import Cluster
from trainwright.embedded.workloads.scheduler.controller import node_and_waiting
from trainwright.embedded.workloads.scheduler.decision import decide
from trainwright.embedded.workloads.scheduler.gangs import COSCHEDULING, NATIVE, VOLCANO, GroupKey, group_of
from trainwright.schema.jsonobject import Json
from unit.embedded.workloads.fromschemas import built_in, make
from unit.embedded.workloads.making import NOW

SEEDS = st.integers(0, 2**32)


@cache
def crd_schema(name: str) -> Json:
    crd = next(crd for crd in manifests.crds() if crd["metadata"]["name"] == name)
    schema: Json = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def job_set_schema() -> Json:
    return crd_schema("jobsets.jobset.x-k8s.io")


def pod_group(rng: Random, key: GroupKey) -> Json:
    """A PodGroup of the kind, as its schema allows it."""
    if key.kind == NATIVE:
        return built_in(rng, "scheduling.k8s.io/v1alpha2", "PodGroup")
    crds = {COSCHEDULING: "podgroups.scheduling.x-k8s.io", VOLCANO: "podgroups.scheduling.volcano.sh"}
    made: Json = make(rng, crd_schema(crds[key.kind]))
    return made


def read(rng: Random, body: Json, name: str, **metadata: Any) -> ApiObject:
    """The object as a store holds it: what an API server always writes is there, the rest may be null or absent."""
    marks = {
        "jobset.sigs.k8s.io/restart-attempt": str(rng.randint(0, 2)),
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/replicatedjob-name": rng.choice(["a", "node", "other"]),
        COMPLETION_INDEX: str(rng.randint(0, 3)),
    }
    body = {key: value for key, value in body.items() if key in ("spec", "status") and value is not None}
    more: Json = {
        "labels": marks,
        "annotations": marks,
        "finalizers": ["batch.kubernetes.io/job-tracking"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "u", "controller": None}],
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30,
    }
    for field in list(more):
        chance = rng.random()
        if chance < 0.2:
            more[field] = None
        elif chance < 0.5:
            del more[field]
    body["metadata"] = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **more, **metadata}
    return msgspec.json.decode(msgspec.json.encode(body), type=ApiObject)


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_a_jobset_and_its_jobs(seed: int) -> None:
    rng = Random(seed)
    of = read(rng, make(rng, job_set_schema()), "js")
    jobs = [read(rng, built_in(rng, "batch/v1", "Job"), f"js-{n}") for n in range(3)]
    gates = Features(restart_job=rng.random() < 0.5, elastic_job_set=rng.random() < 0.5)
    try:
        jobset_decision.decide(of, jobs, has_service=rng.random() < 0.5, now=NOW, gates=gates)
    except (BadLabel, GateOff):
        pass  # what JobSet itself gives up on


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_a_job_and_its_pods(seed: int) -> None:
    rng = Random(seed)
    of = read(rng, built_in(rng, "batch/v1", "Job"), "j")
    owned = [read(rng, built_in(rng, "v1", "Pod"), f"j-{n}") for n in range(4)]
    expected = Expectations()
    expected.released = expected.deleted = {"uid-j-0"}
    decision = job_decision.decide(of, expected.applied(owned, NOW), NOW)
    for pod in decision.create:
        pods.build(of, pod.index, pod.name, pod.failures)
    decision.counted([pod.metadata.uid for pod in decision.release], NOW)


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_a_pod_and_the_nodes(seed: int) -> None:
    rng = Random(seed)
    pods = [read(rng, built_in(rng, "v1", "Pod"), f"p{n}") for n in range(3)]
    nodes = [read(rng, built_in(rng, "v1", "Node"), f"n{n}") for n in range(2)]
    there = [("n0", read(rng, built_in(rng, "v1", "Pod"), f"other-{n}")) for n in range(2)]
    groups = {key: read(rng, pod_group(rng, key), key.name) for pod in pods if (key := group_of(pod)) is not None}
    for pod in pods + [other for _, other in there]:
        node_and_waiting(pod)
    decide(pods, Cluster.of(nodes, there), groups, NOW)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_admission_of_a_jobset_and_of_its_pods(seed: int) -> None:
    rng = Random(seed)
    gates = Features(restart_job=rng.random() < 0.5, elastic_job_set=rng.random() < 0.5)
    old, new = (without_nulls(make(rng, job_set_schema())) for _ in range(2))
    spec = admitted(new.get("spec") or {})
    faults_of_new("js", spec, gates, {})
    faults_of_change({**old, "spec": admitted(old.get("spec") or {})}, {**new, "spec": spec}, gates)
    pod = built_in(rng, "v1", "Pod")
    pod["metadata"] = rng.choice([{}, {"labels": None, "annotations": None}, pod.get("metadata") or {}])
    if placement.is_ours(pod):
        placement.topology_key(pod)
        placement.leader_name(pod)
