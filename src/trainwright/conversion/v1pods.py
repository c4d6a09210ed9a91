"""The pods that Training Operator v1.9 creates for a job.

In: a `V1Job`. Out: its pods in the order of types and indexes, as v1 sends them to the API server: names, labels,
specs with the variables v1 adds. Compared with the real operator in `tests/kube/test_conversion_v1.py`, and with
recorded pods in `tests/unit/conversion`.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field

from trainwright.conversion.v1job import JAX, MPI, PYTORCH, TENSORFLOW, XGBOOST, Replica, V1Job
from trainwright.schema.jsonobject import Json

PREFIX = "training.kubeflow.org/"
JOB_NAME, OPERATOR = f"{PREFIX}job-name", f"{PREFIX}operator-name"
REPLICA_TYPE, REPLICA_INDEX, JOB_ROLE = f"{PREFIX}replica-type", f"{PREFIX}replica-index", f"{PREFIX}job-role"
WAIT_FOR_MASTER = "init-pytorch"
DELIVERY = "kubectl-delivery"
KUBECTL_VOLUME, CONFIG_VOLUME = "mpi-job-kubectl", "mpi-job-config"


@dataclass(frozen=True, slots=True)
class V1Pod:
    name: str
    type: str
    index: int
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Json
    injected: frozenset[str] = field(default=frozenset())
    """Names of the variables that v1 added."""


def pods_of(job: V1Job) -> list[V1Pod]:
    return [pod_of(job, replica, index) for replica in job.replicas.values() for index in range(replica.count)]


def host_name(job: V1Job, type_name: str, index: int) -> str:
    """The name under which others reach a pod: that of its own headless Service, or of an MPI pod."""
    if job.kind is MPI and type_name == "Launcher":
        return f"{job.name}-launcher"
    return f"{job.name}-{type_name.lower()}-{index}"


def pod_of(job: V1Job, replica: Replica, index: int) -> V1Pod:
    template = copy.deepcopy(replica.template)
    metadata, spec = template.get("metadata") or {}, template["spec"]
    labels = {**(metadata.get("labels") or {}), **_labels(job, replica, index)}
    spec["restartPolicy"] = "Never" if replica.restart_policy == "ExitCode" else replica.restart_policy
    _add_port(job, spec)
    added = _add_mpi(job, replica, spec) if job.kind is MPI else _add_variables(job, replica, index, spec)
    if job.kind is PYTORCH and replica.type == "Worker" and "Master" in job.replicas:
        spec.setdefault("initContainers", []).append(_wait_for(host_name(job, "Master", 0)))
    name = host_name(job, replica.type, index)
    return V1Pod(name, replica.type, index, labels, dict(metadata.get("annotations") or {}), spec, frozenset(added))


def _labels(job: V1Job, replica: Replica, index: int) -> dict[str, str]:
    labels = {JOB_NAME: job.name, OPERATOR: job.kind.operator, REPLICA_TYPE: replica.role, REPLICA_INDEX: str(index)}
    if _is_master(job, replica.type, index):
        labels[JOB_ROLE] = "master"
    if job.kind is MPI and replica.type == "Launcher":
        del labels[REPLICA_INDEX]
    return labels


def _is_master(job: V1Job, type_name: str, index: int) -> bool:
    leaders = {"Master", "Launcher"} | ({"Chief"} if job.kind is TENSORFLOW else set())
    if leaders & set(job.replicas):
        return type_name in leaders
    return type_name == "Worker" and index == 0


def _add_port(job: V1Job, spec: Json) -> None:
    if job.kind is MPI:
        return
    container = job.main_container(spec)
    ports = container.setdefault("ports", [])
    if not any(port.get("name") == job.kind.port_name for port in ports):
        ports.append({"name": job.kind.port_name, "containerPort": job.kind.port})


def _add_variables(job: V1Job, replica: Replica, index: int, spec: Json) -> list[str]:
    variables = variables_of(job, replica, index)
    for container in spec["containers"]:
        if job.kind is TENSORFLOW and container.get("name") != job.kind.container:
            continue
        container["env"] = [*(container.get("env") or ()), *({"name": k, "value": v} for k, v in variables.items())]
    return list(variables)


def variables_of(job: V1Job, replica: Replica, index: int) -> dict[str, str]:
    """The variables that v1 gives to the containers of one pod."""
    if job.kind is PYTORCH:
        return _pytorch(job, replica, index)
    if job.kind is TENSORFLOW:
        return {"TF_CONFIG": tf_config(job, replica.type, index)} if job.total != 1 else {}
    if job.kind is XGBOOST:
        return _xgboost(job, replica, index)
    if job.kind is JAX:
        first = job.replicas["Worker"]
        return {
            "PYTHONUNBUFFERED": "1",
            "COORDINATOR_PORT": str(job.port(first)),
            "COORDINATOR_ADDRESS": host_name(job, "Worker", 0),
            "NUM_PROCESSES": str(job.total),
            "PROCESS_ID": str(index),
        }
    return {}


def rank_of(job: V1Job, type_name: str, index: int) -> int:
    """The rank of a pod of a PyTorchJob or XGBoostJob: the master is 0, where there is one."""
    return index + (1 if type_name == "Worker" and "Master" in job.replicas else 0)


def world_size(job: V1Job) -> int:
    """Of a PyTorchJob: nodes times processes; v1 counts `auto` and the like as one."""
    given = str(job.spec.get("nprocPerNode") or "auto")
    return job.total * (int(given) if given.isascii() and given.lstrip("+-").isdigit() else 1)


def _pytorch(job: V1Job, replica: Replica, index: int) -> dict[str, str]:
    variables = {"PYTHONUNBUFFERED": "1"}
    if (master := job.replicas.get("Master")) is not None:
        port, address, rank = str(job.port(master)), host_name(job, "Master", 0), str(rank_of(job, replica.type, index))
        variables |= {
            "MASTER_PORT": port,
            "PET_MASTER_PORT": port,
            "MASTER_ADDR": address,
            "PET_MASTER_ADDR": address,
            "WORLD_SIZE": str(world_size(job)),
            "RANK": rank,
            "PET_NODE_RANK": rank,
        }
    if job.elastic is None or job.elastic.get("nProcPerNode") is None:
        variables["PET_NPROC_PER_NODE"] = str(job.processes)
    if job.elastic is None:
        return {**variables, "PET_NNODES": str(job.total)}
    return variables | elastic_variables(job, host_name(job, "Worker", 0))


def elastic_variables(job: V1Job, host: str) -> dict[str, str]:
    """The variables of an elastic job whose rendezvous is at `host`, unless the job names another."""
    policy, worker = job.elastic or {}, job.replicas["Worker"]
    low, high = policy.get("minReplicas"), policy.get("maxReplicas")
    low, high = (low if low is not None else high), (high if high is not None else low)
    nodes = (worker.count, worker.count) if low is None else (low, high)
    variables = {
        "PET_RDZV_ENDPOINT": f"{policy.get('rdzvHost') or host}:{policy.get('rdzvPort') or job.port(worker)}",
        "PET_RDZV_BACKEND": str(policy.get("rdzvBackend") or "c10d"),
        "PET_NNODES": f"{nodes[0]}:{nodes[1]}",
    }
    for name, member in (("PET_MAX_RESTARTS", "maxRestarts"), ("PET_NPROC_PER_NODE", "nProcPerNode")):
        if policy.get(member) is not None:
            variables[name] = str(policy[member])
    if policy.get("rdzvId") is not None:
        variables["PET_RDZV_ID"] = str(policy["rdzvId"])
    if conf := policy.get("rdzvConf"):
        variables["PET_RDZV_CONF"] = ",".join(f"{item.get('key', '')}={item.get('value', '')}" for item in conf)
    if policy.get("standalone"):
        variables["PET_STANDALONE"] = ""
    return variables


def _xgboost(job: V1Job, replica: Replica, index: int) -> dict[str, str]:
    variables = {
        "MASTER_PORT": str(job.port(job.replicas["Master"])),
        "MASTER_ADDR": host_name(job, "Master", 0),
        "WORLD_SIZE": str(job.total),
        "RANK": str(rank_of(job, replica.type, index)),
        "PYTHONUNBUFFERED": "1",
    }
    if (worker := job.replicas.get("Worker")) is not None:
        variables["WORKER_PORT"] = str(job.port(worker))
        variables["WORKER_ADDRS"] = ",".join(host_name(job, "Worker", each) for each in range(worker.count))
    return variables


def tf_config(job: V1Job, type_name: str, index: int) -> str:
    """TF_CONFIG as v1 writes it: keys of maps in order, no spaces."""
    cluster = {
        replica.role: [
            f"{host_name(job, name, i)}.{job.namespace}.svc:{job.port(replica)}" for i in range(replica.count)
        ]
        for name, replica in sorted(job.replicas.items(), key=lambda item: item[0].lower())
    }
    task = {"type": type_name.lower(), "index": index}
    if job.spec.get("enableDynamicWorker"):
        return _compact({"cluster": sparse_cluster(cluster, type_name.lower(), index), "task": task})
    return _compact({"cluster": cluster, "task": task, "environment": "cloud"})


def sparse_cluster(cluster: dict[str, list[str]], role: str, index: int) -> Json:
    """What one task knows of a cluster whose workers come and go."""
    if role == "ps":
        return {"worker": {}, "ps": [cluster["ps"][index]]}
    if role == "worker":
        return {"worker": {str(index): cluster["worker"][index]}, "ps": cluster.get("ps")}
    return {"worker": {}, "ps": []}


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def _wait_for(host: str) -> Json:
    script = (
        f"err=1;for i in $(seq 100); do if nslookup {host}; then err=0 && break; fi;"
        "echo waiting for master; sleep 2; done; exit $err"
    )
    return {
        "name": WAIT_FOR_MASTER,
        "image": "alpine:3.10",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": {"cpu": "100m", "memory": "20Mi"}, "requests": {"cpu": "50m", "memory": "10Mi"}},
        "command": ["sh", "-c", script],
    }


def launcher_trains(job: V1Job) -> bool:
    """Whether v1 counts the launcher among the hosts: it does when the launcher has a GPU."""
    limits = [
        name
        for container in job.replicas["Launcher"].pod_spec["containers"]
        for name in (container.get("resources") or {}).get("limits") or {}
    ]
    return any("gpu" in name for name in limits)


def _add_mpi(job: V1Job, replica: Replica, spec: Json) -> list[str]:
    container = spec["containers"][0]
    mount = {"name": CONFIG_VOLUME, "mountPath": "/etc/mpi"}
    if replica.type == "Worker":
        if not container.get("command"):
            container["command"], container["args"] = ["sleep"], ["365d"]
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
        spec["volumes"] = [*(spec.get("volumes") or ()), _config_volume(job, ("kubexec.sh", 0o555))]
        return []
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = f"{job.name}-launcher"
    given = {variable["name"] for variable in container.get("env") or ()}
    variables = {
        "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
    }
    if not launcher_trains(job):
        variables |= {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    for name, value in (("I_MPI_HYDRA_BOOTSTRAP", "rsh"), ("I_MPI_HYDRA_BOOTSTRAP_EXEC", "/etc/mpi/kubexec.sh")):
        if name not in given:
            variables[name] = value
    container["env"] = [*(container.get("env") or ()), *({"name": k, "value": v} for k, v in variables.items())]
    delivery = {"name": KUBECTL_VOLUME, "mountPath": "/opt/kube"}
    container["volumeMounts"] = [*(container.get("volumeMounts") or ()), delivery, mount]
    files = (("kubexec.sh", 0o555), ("hostfile", 0o444), ("discover_hosts.sh", 0o555))
    spec["volumes"] = [
        *(spec.get("volumes") or ()),
        {"name": KUBECTL_VOLUME, "emptyDir": {}},
        _config_volume(job, *files),
    ]
    amounts = {"cpu": "100m", "ephemeral-storage": "5Gi", "memory": "512Mi"}
    spec.setdefault("initContainers", []).append(
        {
            "name": DELIVERY,
            "image": "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest",
            "imagePullPolicy": "IfNotPresent",
            "env": [{"name": "TARGET_DIR", "value": "/opt/kube"}, {"name": "NAMESPACE", "value": job.namespace}],
            "volumeMounts": [delivery, mount],
            "resources": {"limits": amounts, "requests": dict(amounts)},
        }
    )
    return list(variables)


def _config_volume(job: V1Job, *files: tuple[str, int]) -> Json:
    items = [{"key": name, "path": name, "mode": mode} for name, mode in files]
    return {"name": CONFIG_VOLUME, "configMap": {"name": f"{job.name}-config", "items": items}}
