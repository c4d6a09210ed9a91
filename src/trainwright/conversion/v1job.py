"""A job of Training Operator v1, read with the operator's own defaults and rules.

In: an object of `kubeflow.org/v1`. Out: a `V1Job`, or `Refused` with every reason. Fields that may be null are absent.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from trainwright.conversion.findings import Refused
from trainwright.schema.jsonobject import Json

API_VERSION = "kubeflow.org/v1"
NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
MANAGERS = ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue")
RESTART_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
CLEAN_POD_POLICIES = ("", "None", "Running", "All")


class Kind(NamedTuple):
    """What v1 knows about one kind of job."""

    name: str
    plural: str
    field: str
    """The field of the spec that holds the replicas by type."""
    types: tuple[str, ...]
    """In the order of their ranks."""
    container: str
    """The container that trains; it must be there by this name, but for MPI, which takes the first one."""
    port: int
    restart_policy: str

    @property
    def port_name(self) -> str:
        return f"{self.name.lower()}-port"

    @property
    def operator(self) -> str:
        return f"{self.name.lower()}-controller"


PYTORCH = Kind("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs", ("Master", "Worker"), "pytorch", 23456, "OnFailure")
MPI = Kind("MPIJob", "mpijobs", "mpiReplicaSpecs", ("Launcher", "Worker"), "", 0, "Never")
TENSORFLOW = Kind(
    "TFJob", "tfjobs", "tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator"), "tensorflow", 2222, "Never"
)
XGBOOST = Kind("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs", ("Master", "Worker"), "xgboost", 9999, "Never")
JAX = Kind("JAXJob", "jaxjobs", "jaxReplicaSpecs", ("Worker",), "jax", 6666, "Never")
KINDS = {kind.name: kind for kind in (PYTORCH, MPI, TENSORFLOW, XGBOOST, JAX)}


@dataclass(frozen=True, slots=True)
class Replica:
    """The replicas of one type."""

    type: str
    count: int
    restart_policy: str
    template: Json

    @property
    def role(self) -> str:
        """The type as labels and names of pods spell it."""
        return self.type.lower()

    @property
    def pod_spec(self) -> Json:
        return self.template["spec"]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class V1Job:
    kind: Kind
    name: str
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Json
    replicas: dict[str, Replica]
    """By type, in the order of ranks; types without a pod are left out."""

    @property
    def run_policy(self) -> Json:
        return self.spec.get("runPolicy") or {}

    @property
    def elastic(self) -> Json | None:
        policy: Json | None = self.spec.get("elasticPolicy")
        return policy

    @property
    def total(self) -> int:
        return sum(replica.count for replica in self.replicas.values())

    @property
    def clean_pod_policy(self) -> str:
        policy = self.run_policy.get("cleanPodPolicy")
        if policy is None and self.kind is MPI:
            policy = self.spec.get("cleanPodPolicy")
        return policy or "None"

    def main_container(self, pod_spec: Json) -> Json:
        """The container that trains. MPI's is the first one, or the one that `mainContainer` names."""
        name = self.kind.container or self.spec.get("mainContainer") or ""
        containers: list[Json] = pod_spec["containers"]
        return next((container for container in containers if container.get("name") == name), containers[0])

    def port(self, replica: Replica) -> int:
        """The port at which the main container of this type listens."""
        for port in self.main_container(replica.pod_spec).get("ports") or ():
            if port.get("name") == self.kind.port_name:
                return int(port["containerPort"])
        return self.kind.port

    @property
    def processes(self) -> str | None:
        """`nprocPerNode` of a PyTorchJob, as v1 hands it to torchrun."""
        if self.elastic is not None and self.elastic.get("nProcPerNode") is not None:
            return str(self.elastic["nProcPerNode"])
        return str(self.spec.get("nprocPerNode") or "auto") if self.kind is PYTORCH else None


def read(value: Json, namespace: str = "default") -> V1Job:
    """The job; raises `Refused`."""
    kind = KINDS.get(str(value.get("kind")))
    if kind is None or value.get("apiVersion") != API_VERSION:
        raise Refused([f"{value.get('apiVersion')} {value.get('kind')} is not a job of Training Operator v1"])
    metadata, spec = value.get("metadata") or {}, _without_null(value.get("spec") or {})
    name = str(metadata.get("name") or "")
    faults = list(_shape_faults(kind, name, spec))
    if faults:
        raise Refused(faults)
    job = V1Job(
        kind,
        name,
        str(metadata.get("namespace") or namespace),
        dict(metadata.get("labels") or {}),
        dict(metadata.get("annotations") or {}),
        spec,
        _replicas(kind, spec),
    )
    if faults := list(_faults(job)):
        raise Refused(faults)
    return job


def _replicas(kind: Kind, spec: Json) -> dict[str, Replica]:
    found: dict[str, Replica] = {}
    given = {str(name).lower(): value for name, value in spec[kind.field].items()}
    for name in kind.types:
        entry = given.get(name.lower())
        if entry is None:
            continue
        default = 0 if kind is MPI and name == "Worker" else 1
        replica = Replica(
            name,
            entry.get("replicas", default),
            entry.get("restartPolicy") or kind.restart_policy,
            copy.deepcopy(entry["template"]),
        )
        if replica.count > 0:
            found[name] = replica
    return found


def _shape_faults(kind: Kind, name: str, spec: Json) -> Iterator[str]:
    """What must hold before the job can be read at all."""
    if not NAME.fullmatch(name) or len(name) > 63:
        yield f'metadata.name: "{name}" is not a DNS label of at most 63 letters, digits and hyphens'
    replicas = spec.get(kind.field)
    if not isinstance(replicas, dict) or not replicas:
        yield f"spec.{kind.field}: must be given, by type: {', '.join(kind.types)}"
        return
    known = {each.lower() for each in kind.types}
    for each, entry in replicas.items():
        where = f"spec.{kind.field}[{each}]"
        if str(each).lower() not in known:
            yield f"{where}: a {kind.name} has no such replica type; it has {', '.join(kind.types)}"
            continue
        if not isinstance(entry, dict):
            yield f"{where}: must be a mapping with a template"
            continue
        containers = ((entry.get("template") or {}).get("spec") or {}).get("containers")
        if not isinstance(containers, list) or not all(isinstance(item, dict) for item in containers) or not containers:
            yield f"{where}.template.spec.containers: must have at least one container"
            continue
        yield from _entry_faults(kind, where, entry, containers)


def _entry_faults(kind: Kind, where: str, entry: Json, containers: list[Json]) -> Iterator[str]:
    count = entry.get("replicas", 1)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        yield f"{where}.replicas: must be a whole number that is not negative"
    if entry.get("restartPolicy") not in (None, "", *RESTART_POLICIES):
        yield f"{where}.restartPolicy: must be one of {', '.join(RESTART_POLICIES)}"
    for index, container in enumerate(containers):
        if not container.get("image"):
            yield f"{where}.template.spec.containers[{index}].image: must be given"
    if kind.container and not any(container.get("name") == kind.container for container in containers):
        yield f'{where}.template.spec.containers: must have a container named "{kind.container}"'
    if not kind.container and not all(container.get("name") for container in containers):
        yield f"{where}.template.spec.containers: every container must have a name"


def _faults(job: V1Job) -> Iterator[str]:
    """What v1's webhooks refuse, and what v1 takes and could never run."""
    spec, policy, where = job.spec, job.run_policy, f"spec.{job.kind.field}"
    manager = policy.get("managedBy")
    if manager not in (None, *MANAGERS):
        yield f"spec.runPolicy.managedBy: must be one of {', '.join(MANAGERS)}"
    if job.clean_pod_policy not in CLEAN_POD_POLICIES:
        yield f"spec.runPolicy.cleanPodPolicy: must be one of {', '.join(filter(None, CLEAN_POD_POLICIES))}"
    master = job.replicas.get("Master") if job.kind in (PYTORCH, XGBOOST) else None
    if master is not None and master.count != 1:
        yield f"{where}[Master].replicas: must be 1"
    if job.kind is PYTORCH:
        yield from _pytorch_faults(job, master)
    if job.kind is XGBOOST and master is None:
        yield f"{where}[Master]: must be there: it is rank 0, whose address all others are given"
    if job.kind is MPI:
        launcher = job.replicas.get("Launcher")
        if launcher is None or launcher.count != 1:
            yield f"{where}[Launcher]: there must be exactly one launcher"
        if "Worker" not in job.replicas:
            yield f"{where}[Worker]: there is no worker, so nothing is distributed; run the command as a plain TrainJob"
        slots = spec.get("slotsPerWorker", 1)
        if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
            yield "spec.slotsPerWorker: must be a positive whole number"
    if job.kind is TENSORFLOW:
        if "Chief" in job.replicas and "Master" in job.replicas:
            yield f"{where}: must not have both a Chief and a Master"
        if not {"Chief", "Master", "Worker"} & set(job.replicas):
            yield f"{where}: has neither Chief, Master nor Worker, so that it would never complete"
    if not job.replicas:
        yield f"{where}: all types have 0 replicas"


def _pytorch_faults(job: V1Job, master: Replica | None) -> Iterator[str]:
    where, worker = f"spec.{job.kind.field}", job.replicas.get("Worker")
    if job.elastic is not None:
        if worker is None:
            yield f"{where}[Worker]: must be there when elasticPolicy is given"
        if job.elastic.get("nProcPerNode") is not None and job.spec.get("nprocPerNode") is not None:
            yield "spec.elasticPolicy.nProcPerNode: must not be given beside spec.nprocPerNode; keep the latter"
        low, high = job.elastic.get("minReplicas"), job.elastic.get("maxReplicas")
        if low is not None and high is not None and low > high:
            yield f"spec.elasticPolicy: minReplicas {low} is more than maxReplicas {high}"
    elif master is None and (worker is None or worker.count > 1):
        yield (
            f"{where}[Master]: there is no Master, so that v1 gives the workers no MASTER_ADDR and no RANK and they "
            "never meet; add a Master, or an elasticPolicy"
        )


def _without_null(value: Any) -> Any:
    """The value without members that are null: v1 reads them as absent."""
    if isinstance(value, dict):
        return {key: _without_null(member) for key, member in value.items() if member is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value
