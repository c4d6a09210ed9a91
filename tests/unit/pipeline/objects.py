"""The smallest complete TrainJob and runtime, with the changes that a test asks for."""

from __future__ import annotations

from typing import Any

from trainwright.api.runtime import TrainingRuntime, runtime_from
from trainwright.api.trainjob import TrainJob, trainjob_from
from trainwright.pipeline import Apply, CreateOnce, MaskedKeys, Observed, Plan, build
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json

ROLE = "trainer.kubeflow.org/trainjob-ancestor-step"


def job_of_runtime(name: str = "node", role: str = "trainer", **pod_spec: Any) -> Json:
    """One replicatedJob; `pod_spec` replaces members of its pod spec."""
    container = "node" if role in ("trainer", "") else role
    pod = {"containers": [{"name": container, "image": "img:1"}], **pod_spec}
    template: Json = {"spec": {"template": {"spec": pod}}}
    if role:
        template["metadata"] = {"labels": {ROLE: role}}
    return {"name": name, "template": template}


def runtime(*jobs: Json, policy: Json | None = None, gang: Json | None = None, **template: Any) -> TrainingRuntime:
    """A ClusterTrainingRuntime; `policy` is its mlPolicy, `template` goes into the JobSet's spec."""
    spec: Json = {"template": {"spec": {"replicatedJobs": list(jobs) or [job_of_runtime()], **template}}}
    spec["mlPolicy"] = {"numNodes": 1} if policy is None else policy
    if gang is not None:
        spec["podGroupPolicy"] = gang
    return runtime_from({"kind": "ClusterTrainingRuntime", "metadata": {"name": "r"}, "spec": spec})


def trainjob(
    trainer: Json | None = None, *, status: Json | None = None, metadata: Json | None = None, **spec: Any
) -> TrainJob:
    """A TrainJob of that runtime."""
    body: Json = {"runtimeRef": {"name": "r"}, "suspend": False, **spec}
    if trainer is not None:
        body["trainer"] = trainer
    value: Json = {"metadata": {"name": "tj", "namespace": "ns", "uid": "u1", **(metadata or {})}, "spec": body}
    if status is not None:
        value["status"] = status
    return trainjob_from(value)


def plan(job: TrainJob, of: TrainingRuntime, observed: Observed | None = None, **options: Any) -> Plan:
    return build(job, of, observed or Observed(), load(discovered={}, **options), MaskedKeys())


def objects(made: Plan) -> dict[str, Json]:
    return {f"{i.object['kind']}/{i.object['metadata']['name']}": i.object for i in made.objects}


def jobset(job: TrainJob, of: TrainingRuntime, **options: Any) -> Json:
    return objects(plan(job, of, **options))["JobSet/tj"]


def pods(made: Json, name: str = "node") -> Json:
    """The pod spec of one replicatedJob of a JobSet."""
    item = next(item for item in made["spec"]["replicatedJobs"] if item["name"] == name)
    spec: Json = item["template"]["spec"]["template"]["spec"]
    return spec


def container(made: Json, job: str = "node", name: str = "node") -> Json:
    found: Json = next(item for item in pods(made, job)["containers"] if item["name"] == name)
    return found


def env(made: Json, job: str = "node", name: str = "node") -> Json:
    """Variables by name; one that is taken from a field is shown by the field's path."""
    values = container(made, job, name).get("env", [])
    return {v["name"]: v.get("value") if "value" in v else v["valueFrom"]["fieldRef"]["fieldPath"] for v in values}


def intentions(made: Plan) -> list[tuple[type[Apply] | type[CreateOnce], str]]:
    return [(type(i), i.object["kind"]) for i in made.objects]
