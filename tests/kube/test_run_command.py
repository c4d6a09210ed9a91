"""`trainwright run train.py --context …` on a real Kubernetes, with our operator and with Kubeflow's.

KWOK's nodes run nothing, so what is asserted is what a kubelet would get: the pods and everything they refer to. That
the command in them works is for `tests/embedded/test_run_elsewhere.py`, where a pod runs it.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tarfile
from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from commandline import COMMAND
from comparison.contenders import OURS, REFERENCE, Contender
from comparison.stage import Stage
from trainwright.cli.launch.runtimes import runtime_of_run
from trainwright.cli.launch.travel import UNPACK
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import ALL_PARTS
from trainwright.testing.nodes import OUTCOME_ANNOTATION
from waiting import eventually

TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
JOBSET = "/apis/jobset.x-k8s.io/v1alpha2"


@pytest.fixture(scope="module", params=[OURS, REFERENCE], ids=["our-operator", "kubeflow-trainer"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    contender: Contender = request.param
    with Stage(contender, tmp_path_factory.mktemp(contender.name), parts=ALL_PARTS) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "x.csv").write_text("1,2\n")
    (folder / "neighbour.py").write_text("def load(): ...\n")
    (folder / "train.py").write_text("import torch, neighbour\n")
    (folder / ".gitignore").write_text("*.pt\n")
    (folder / "old.pt").write_text("not this")
    return folder


class Typed:
    """`trainwright … --kubeconfig … --context …` in a project."""

    def __init__(self, stage: Stage, project: Path, records: Path) -> None:
        kubeconfig = stage.plane.admin_kubeconfig
        self.context = yaml.safe_load(kubeconfig.read_text())["current-context"]
        self._where = ["--kubeconfig", str(kubeconfig), "--context", self.context, "--dir", str(records)]
        self._namespace = stage.plane.namespace("run")
        self._project = project

    @property
    def namespace(self) -> str:
        return self._namespace

    def __call__(self, name: str, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [*COMMAND, name, *self._where, "-n", self._namespace, *arguments],
            cwd=self._project,
            env={**os.environ, "HF_TOKEN": "hf_value", "UNNAMED": "stays"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr + done.stdout


@pytest.fixture
def typed(stage: Stage, project: Path, tmp_path: Path) -> Typed:
    return Typed(stage, project, tmp_path / "records")


def claim(stage: Stage, namespace: str) -> None:
    """A bound volume claim named results."""
    admin = stage.plane.admin
    size = {"storage": "1Gi"}
    volume: Json = {
        "metadata": {"name": f"results-{namespace}"},
        "spec": {
            "capacity": size,
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": "/results"},
            "claimRef": {"namespace": namespace, "name": "results"},
            "storageClassName": "",
        },
    }
    wanted: Json = {
        "metadata": {"name": "results"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": size}, "storageClassName": ""},
    }
    admin.create("/api/v1/persistentvolumes", volume)
    admin.create(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", wanted)


def is_gone(stage: Stage, path: str) -> bool:
    return stage.plane.admin.find(path) is None


def name_of_run(output: str) -> str:
    found = re.search(r"^(\S+)  Created", output, re.MULTILINE)
    assert found, output
    return found[1]


def test_two_nodes_train_with_code_variables_output_and_retries(stage: Stage, typed: Typed, tmp_path: Path) -> None:
    admin, here = stage.plane.admin, typed.namespace
    claim(stage, here)
    flags = [
        "--nodes",
        "2",
        "--env",
        "HF_TOKEN",
        "--retries",
        "2",
        "--output-claim",
        "results",
        "--image",
        "me/train:1",
    ]
    output = typed("run", "train.py", *flags, "--", "--lr", "0.1")
    assert output.splitlines()[0].startswith(f"trainwright: on context {typed.context} at https://127.0.0.1:")
    assert "Complete" in output
    name = name_of_run(output)

    pods = [pod for pod in admin.items(f"/api/v1/namespaces/{here}/pods") if pod["metadata"]["name"].startswith(name)]
    assert len(pods) == 2
    secret = admin.get(f"/api/v1/namespaces/{here}/secrets/{name}")
    config_map = admin.get(f"/api/v1/namespaces/{here}/configmaps/{name}")
    runtime = admin.get(f"{TRAINER}/namespaces/{here}/trainingruntimes/{name}")
    for pod in pods:
        [container] = pod["spec"]["containers"]
        words = (container.get("command") or []) + (container.get("args") or [])
        assert words == ["sh", "-c", UNPACK, "trainwright", "torchrun", "train.py", "--lr", "0.1"]
        assert container["image"] == "me/train:1"
        env = {variable["name"]: variable for variable in container["env"]}
        assert env["HF_TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": name, "key": "HF_TOKEN"}}
        assert "UNNAMED" not in env
        assert env["PET_NNODES"]["value"] == "2"
        assert env["TRAINWRIGHT_OUTPUT"]["value"] == f"/trainwright/output/{name}"
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        assert volumes["trainwright-output"]["persistentVolumeClaim"] == {"claimName": "results"}
        assert env["TRAINWRIGHT_OUTPUT"]["value"].startswith(mounted["trainwright-output"])
        assert volumes["trainwright-code"]["configMap"]["name"] == name
        assert (
            env["TRAINWRIGHT_CODE"]["value"] == f"{mounted['trainwright-code']}/{next(iter(config_map['binaryData']))}"
        )
        assert env["TRAINWRIGHT_WORKDIR"]["value"] == mounted["trainwright-work"]
        assert "emptyDir" in volumes["trainwright-work"]
    assert {key: b64decode(value).decode() for key, value in secret["data"].items()} == {"HF_TOKEN": "hf_value"}
    assert config_map["immutable"] is True
    [archive] = config_map["binaryData"].values()
    with tarfile.open(fileobj=io.BytesIO(b64decode(archive))) as tar:
        assert sorted(tar.getnames()) == [".gitignore", "data/x.csv", "neighbour.py", "train.py"]
    assert admin.get(f"{JOBSET}/namespaces/{here}/jobsets/{name}")["spec"]["failurePolicy"]["maxRestarts"] == 2

    job = admin.get(f"{TRAINER}/namespaces/{here}/trainjobs/{name}")
    for owned in (secret, config_map, runtime):
        [owner] = owned["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("TrainJob", job["metadata"]["uid"])
    record = json.loads((tmp_path / "records" / "runs" / name / "run.json").read_text())
    assert (record["state"], record["context"], record["uid"]) == ("Complete", typed.context, job["metadata"]["uid"])

    assert name in typed("get")
    assert "loss=" in typed("logs", name)
    assert "deleted" in typed("delete", name)
    for path in (
        f"/api/v1/namespaces/{here}/secrets/{name}",
        f"/api/v1/namespaces/{here}/configmaps/{name}",
        f"{TRAINER}/namespaces/{here}/trainingruntimes/{name}",
    ):
        eventually(f"{path} to go with its TrainJob", partial(is_gone, stage, path))


def test_a_script_without_torch_brings_its_runtime(stage: Stage, typed: Typed, project: Path) -> None:
    (project / "train.py").write_text("print('no framework')\n")
    name = name_of_run(typed("run", "train.py", "--nodes", "2"))
    here = typed.namespace
    runtime = stage.plane.admin.get(f"{TRAINER}/namespaces/{here}/trainingruntimes/{name}")
    assert runtime["metadata"]["labels"]["trainer.kubeflow.org/framework"] == "plain"
    pods = stage.plane.admin.items(f"/api/v1/namespaces/{here}/pods")
    assert [pod["spec"]["containers"][0]["command"][4:] for pod in pods] == [["python", "train.py"]] * 2


def test_suspend_resume_and_wait(stage: Stage, typed: Typed) -> None:
    admin, here = stage.plane.admin, typed.namespace
    slow = runtime_of_run(admin.get(f"{TRAINER}/clustertrainingruntimes/torch-distributed"), name="slow", retries=0)
    [job] = slow["spec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"].setdefault("metadata", {})["annotations"] = {OUTCOME_ANNOTATION: "hang"}
    admin.create(f"{TRAINER}/namespaces/{here}/trainingruntimes", slow)
    name = name_of_run(typed("run", "train.py", "--runtime", "slow", "--detach"))
    assert "has not ended" in typed("wait", name, "--timeout", "1", code=124)
    pods = f"/api/v1/namespaces/{here}/pods"
    assert "is suspended" in typed("suspend", name)
    assert admin.items(pods) == []
    assert "Suspended" in typed("get")
    typed("resume", name)
    eventually("its pod to run again", lambda: [it["status"]["phase"] for it in admin.items(pods)] == ["Running"])
    assert "deleted" in typed("delete", name)


def test_a_job_of_a_fixed_name_runs_again_and_a_typo_costs_nothing(stage: Stage, typed: Typed, project: Path) -> None:
    file = project / "job.yaml"
    spec = "spec:\n  runtimeRef: {name: torch-distributed}\n  trainer: {numNodes: 1}\n"
    head = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: fixed}\n"
    file.write_text(head + spec)
    typed("run", "job.yaml")
    path = f"{TRAINER}/namespaces/{typed.namespace}/trainjobs/fixed"
    first = stage.plane.admin.get(path)["metadata"]["uid"]
    file.write_text(head + spec.replace("numNodes", "numNode"))
    assert 'unknown field "spec.trainer.numNode"' in typed("run", "job.yaml", code=1)
    assert stage.plane.admin.get(path)["metadata"]["uid"] == first
    file.write_text(head + spec)
    assert "replaces TrainJob fixed" in typed("run", "job.yaml")
    assert stage.plane.admin.get(path)["metadata"]["uid"] != first


def test_a_second_operator_is_refused_where_webhooks_call_another(stage: Stage, tmp_path: Path) -> None:
    configuration = tmp_path / "operator.yaml"
    configuration.write_text(
        "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n"
        'health: {healthProbeBindAddress: "0"}\nmetrics: {bindAddress: "0"}\n'
    )
    validator = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/validator.trainer.kubeflow.org"
    before = stage.plane.admin.get(validator)
    done = subprocess.run(
        [*COMMAND, "operator", "--kubeconfig", str(stage.plane.admin_kubeconfig), "--config", str(configuration)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "calls Service kubeflow-system/kubeflow-trainer-controller-manager" in done.stderr
    assert "--take-over" in done.stderr
    assert stage.plane.admin.get(validator) == before
