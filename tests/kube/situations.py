"""Situations for a scheduler: nodes, pods on them, and one pod that wants in. Seeded, to be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from trainwright.schema.jsonobject import Json

ZONES = ("a", "b", "c")
APPS = ("x", "y")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Situation:
    nodes: list[Json]
    there: list[Json]
    pod: Json


def situation(seed: int) -> Situation:
    rng = Random(seed)
    nodes = [_node(rng, f"s{seed}-n{number}") for number in range(rng.randint(1, 4))]
    there = []
    for number in range(rng.randint(0, 5)):
        where = rng.choice(nodes)["metadata"]["name"]
        pod = _pod(rng, f"s{seed}-there-{number}", cpu=rng.choice(("100m", "500m", "1")))
        if rng.random() < 0.3:
            pod["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [_term(rng)]}}
        pod["spec"]["nodeName"] = where
        there.append(pod)
    return Situation(nodes, there, _wanting(rng, f"s{seed}-pod"))


def _node(rng: Random, name: str) -> Json:
    labels = {"kubernetes.io/hostname": name}
    if rng.random() < 0.8:
        labels["zone"] = rng.choice(ZONES)
    if rng.random() < 0.5:
        labels["disk"] = rng.choice(("ssd", "hdd"))
    spec: Json = {}
    if rng.random() < 0.25:
        effect = rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        spec["taints"] = [{"key": "dedicated", "value": rng.choice(("gpu", "big")), "effect": effect}]
    if rng.random() < 0.1:
        spec["unschedulable"] = True
    room = {"cpu": rng.choice(("1", "2", "4")), "memory": rng.choice(("1Gi", "8Gi")), "pods": rng.choice(("3", "110"))}
    if rng.random() < 0.3:
        room["example.com/chip"] = "2"
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": room}}


def _pod(rng: Random, name: str, cpu: str, memory: str = "64Mi") -> Json:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    labels = {"app": rng.choice(APPS)}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}


def _term(rng: Random) -> Json:
    selector = {"matchLabels": {"app": rng.choice(APPS)}}
    return {"labelSelector": selector, "topologyKey": rng.choice(("zone", "kubernetes.io/hostname"))}


def _wanting(rng: Random, name: str) -> Json:
    pod = _pod(rng, name, cpu=rng.choice(("500m", "1", "2", "8")), memory=rng.choice(("64Mi", "4Gi")))
    spec = pod["spec"]
    if rng.random() < 0.2:
        spec["containers"][0]["resources"]["limits"] = {"example.com/chip": rng.choice(("1", "3"))}
    if rng.random() < 0.25:
        spec["nodeSelector"] = {"disk": "ssd"}
    if rng.random() < 0.4:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]
    affinity: Json = {}
    if rng.random() < 0.25:
        operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        expression: Json = {"key": "zone", "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = ["a", "b"]
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if rng.random() < 0.25:
        affinity["podAffinity"] = {REQUIRED: [_term(rng)]}
    if rng.random() < 0.25:
        affinity["podAntiAffinity"] = {REQUIRED: [_term(rng)]}
    if affinity:
        spec["affinity"] = affinity
    if rng.random() < 0.25:
        selector = {"matchLabels": {"app": rng.choice(APPS)}}
        when = rng.choice(("DoNotSchedule", "ScheduleAnyway"))
        constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, "labelSelector": selector}
        spec["topologySpreadConstraints"] = [constraint]
    if rng.random() < 0.08:
        spec["schedulingGates"] = [{"name": "example.com/gate"}]
    return pod
