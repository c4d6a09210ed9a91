"""Random jobs of Training Operator v1: valid ones that use every field that the conversion reads, from a seed."""

from __future__ import annotations

import copy
import random
from typing import Any

from trainwright.conversion.v1job import JAX, KINDS, MPI, PYTORCH, TENSORFLOW, XGBOOST, Kind

Json = dict[str, Any]
IMAGES = ("registry.example/train:1", "pytorch/pytorch:2.5", "tf:2.17")
COMMANDS = (["python", "train.py"], ["torchrun", "train.py"], ["python", "-u", "train.py"], ["bash", "-c", "run.sh"])


def random_job(seed: int) -> Json:
    choose = random.Random(seed)
    kind = KINDS[choose.choice(sorted(KINDS))]
    spec: Json = {kind.field: _replicas(choose, kind)}
    if policy := _run_policy(choose):
        spec["runPolicy"] = policy
    if kind is PYTORCH:
        _pytorch(choose, spec)
    if kind is MPI and choose.random() < 0.6:
        spec["slotsPerWorker"] = choose.randint(1, 8)
    if kind is TENSORFLOW and choose.random() < 0.3:
        spec["successPolicy"] = choose.choice(["", "AllWorkers"])
    if kind is TENSORFLOW and choose.random() < 0.15:
        spec["enableDynamicWorker"] = True
    metadata: Json = {"name": f"job-{seed}", "namespace": choose.choice(["default", "team-a"])}
    if choose.random() < 0.4:
        metadata["labels"] = {"kueue.x-k8s.io/queue-name": "team", "owner": "someone"}
    if choose.random() < 0.3:
        metadata["annotations"] = {"note": "a note"}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind.name, "metadata": metadata, "spec": spec}


def _pytorch(choose: random.Random, spec: Json) -> None:
    replicas = spec[PYTORCH.field]
    if "Worker" in replicas and choose.random() < 0.3:
        elastic: Json = {}
        if choose.random() < 0.7:
            elastic["minReplicas"] = 1
            elastic["maxReplicas"] = choose.randint(1, 8)
        for field, value in (("maxRestarts", 3), ("rdzvBackend", "c10d"), ("rdzvId", "an-id"), ("rdzvPort", 29400)):
            if choose.random() < 0.4:
                elastic[field] = value
        if choose.random() < 0.3:
            elastic["rdzvConf"] = [{"key": "timeout", "value": "60"}, {"key": "read_timeout", "value": "30"}]
        if choose.random() < 0.2:
            metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
            metric["resource"]["target"]["averageUtilization"] = 80  # type: ignore[index]
            elastic["metrics"] = [metric]
        spec["elasticPolicy"] = elastic
        replicas.pop("Master", None) if choose.random() < 0.8 else None
    elif "Master" not in replicas:
        replicas["Worker"]["replicas"] = 1
    if choose.random() < 0.6:
        spec["nprocPerNode"] = choose.choice(["auto", "gpu", "cpu", "1", "2", "8"])


def _replicas(choose: random.Random, kind: Kind) -> Json:
    shared = choose.random() < 0.5
    common, policy = _template(choose, kind), _restart(choose)
    result: Json = {}
    for name in _types(choose, kind):
        entry: Json = {"template": common if shared else _template(choose, kind)}
        if choose.random() < 0.8 or (name == "Master" and kind in (PYTORCH, XGBOOST)):
            entry["replicas"] = 1 if name in ("Master", "Chief", "Launcher", "Evaluator") else choose.randint(1, 4)
        if kind is MPI and name == "Worker":
            entry.setdefault("replicas", 2)
            if choose.random() < 0.9:
                entry["template"] = copy.deepcopy(entry["template"])
                _wait_for_launcher(choose, entry["template"]["spec"]["containers"][0])
        given = policy if shared else _restart(choose)
        if given is not None:
            entry["restartPolicy"] = given
        result[name] = entry
    return result


def _wait_for_launcher(choose: random.Random, container: Json) -> None:
    container.pop("args", None)
    container.pop("command", None)
    if choose.random() < 0.5:
        container["command"] = ["sleep", "infinity"]


def _types(choose: random.Random, kind: Kind) -> list[str]:
    if kind is TENSORFLOW:
        leaders = choose.choice([["Chief"], ["Master"], []])
        workers = ["Worker"] if not leaders or choose.random() < 0.7 else []
        return [*leaders, *workers, *[name for name in ("PS", "Evaluator") if choose.random() < 0.4]]
    if kind is JAX:
        return ["Worker"]
    if kind is MPI:
        return ["Launcher", "Worker"]
    return ["Master", "Worker"] if choose.random() < 0.75 or (kind is XGBOOST and choose.random() < 0.5) else ["Master"]


def _restart(choose: random.Random) -> str | None:
    return choose.choice([None, None, "Never", "Never", "Never", "OnFailure", "OnFailure", "ExitCode", "Always"])


def _template(choose: random.Random, kind: Kind) -> Json:
    main: Json = {"name": kind.container or "mpi", "image": choose.choice(IMAGES)}
    if kind is not MPI or choose.random() < 0.7:
        main["command"] = ["mpirun", "python", "train.py"] if kind is MPI else list(choose.choice(COMMANDS))
    if choose.random() < 0.5:
        main["args"] = ["--lr", "0.1", "--epochs", str(choose.randint(1, 9))]
    if choose.random() < 0.5:
        main["env"] = [{"name": "HF_HOME", "value": "/cache"}, {"name": "GREETING", "value": "hello $(HF_HOME)"}]
        if choose.random() < 0.4:
            reference = {"secretKeyRef": {"name": "token", "key": "value"}}
            main["env"].append({"name": "TOKEN", "valueFrom": reference})
        if choose.random() < 0.3:
            main["env"].append({"name": "RANK", "value": "7"})
    if choose.random() < 0.5:
        main["resources"] = choose.choice(
            [
                {"limits": {"nvidia.com/gpu": 2}},
                {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
                {"limits": {"cpu": 4, "memory": "16Gi", "nvidia.com/gpu": "1"}},
            ]
        )
    if kind.container and choose.random() < 0.2:
        main["ports"] = [{"name": kind.port_name, "containerPort": choose.randint(20000, 30000)}]
    spec: Json = {"containers": [main]}
    _pod_fields(choose, main, spec)
    template: Json = {"spec": spec}
    if choose.random() < 0.5:
        template["metadata"] = {"labels": {"app": "trainer"}, "annotations": {"sidecar.istio.io/inject": "false"}}
    return template


def _pod_fields(choose: random.Random, main: Json, spec: Json) -> None:
    if choose.random() < 0.4:
        spec["volumes"] = [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "x", "emptyDir": {}},
        ]
        main["volumeMounts"] = [{"name": "data", "mountPath": "/data"}, {"name": "x", "mountPath": "/x"}]
    if choose.random() < 0.3:
        spec["nodeSelector"] = {"pool": "gpu"}
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    if choose.random() < 0.2:
        spec["serviceAccountName"] = "trainer"
    if choose.random() < 0.15:
        spec["priorityClassName"] = "system-node-critical"
    if choose.random() < 0.15:
        spec["hostNetwork"] = True
    if choose.random() < 0.15:
        spec["initContainers"] = [{"name": "fetch", "image": "busybox", "command": ["true"]}]
    if choose.random() < 0.15:
        spec["containers"].append({"name": "logs", "image": "fluentbit", "args": ["-c", "x"]})
    if choose.random() < 0.15:
        main["workingDir"] = "/work"
        main["imagePullPolicy"] = "Always"


def _run_policy(choose: random.Random) -> Json:
    policy: Json = {}
    if choose.random() < 0.5:
        policy["cleanPodPolicy"] = choose.choice(["None", "Running", "All"])
    for field, value in (("ttlSecondsAfterFinished", 60), ("activeDeadlineSeconds", 3600), ("suspend", True)):
        if choose.random() < 0.2:
            policy[field] = value
    if choose.random() < 0.25:
        policy["backoffLimit"] = choose.randint(0, 5)
    if choose.random() < 0.1:
        policy["managedBy"] = choose.choice(["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"])
    if choose.random() < 0.2:
        gang: Json = {"queue": "training"} if choose.random() < 0.5 else {}
        if choose.random() < 0.4:
            gang["minAvailable"] = choose.randint(1, 4)
        if choose.random() < 0.3:
            gang["scheduleTimeoutSeconds"] = 60
        policy["schedulingPolicy"] = gang or {"queue": "default"}
    return policy
