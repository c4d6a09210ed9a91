"""A TrainJob whose dataset and model are fetched before it trains, on the local cluster."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from commandline import CommandLine
from embedded.node.machine import PROBED
from initializers.fileserver import Answer, FileServer, noise
from trainwright.testing.certificates import Authority

DOCUMENTS = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata:
  name: fetching
spec:
  mlPolicy:
    numNodes: 1
  template:
    spec:
      replicatedJobs:
{initializers}
        - name: node
          dependsOn:
            - {{name: dataset-initializer, status: Complete}}
            - {{name: model-initializer, status: Complete}}
          template:
            metadata:
              labels:
                trainer.kubeflow.org/trainjob-ancestor-step: trainer
            spec:
              backoffLimit: 0
              template:
                spec:
                  restartPolicy: Never
                  volumes:
                    - {{name: initializer, hostPath: {{path: {volume}}}}}
                  containers:
                    - name: node
                      image: python
                      volumeMounts:
                        - {{name: initializer, mountPath: /workspace}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: fine-tune
spec:
  runtimeRef: {{kind: TrainingRuntime, name: fetching}}
  initializer:
    dataset:
      storageUri: {url}/train.csv#sha256={dataset}
    model:
      storageUri: {url}/model.safetensors
      env:
        - {{name: TRAINWRIGHT_CACHE_DIR, value: none}}
  trainer:
    command: [sh, -c]
    args: ["sha256sum /workspace/dataset/train.csv /workspace/model/model.safetensors"]
"""

INITIALIZER = """\
        - name: {step}-initializer
          template:
            metadata:
              labels:
                trainer.kubeflow.org/trainjob-ancestor-step: {step}-initializer
            spec:
              backoffLimit: 0
              template:
                spec:
                  restartPolicy: Never
                  volumes:
                    - {{name: initializer, hostPath: {{path: {volume}}}}}
                  containers:
                    - name: {step}-initializer
                      image: trainwright/trainwright
                      command: [trainwright, initialize, {step}]
                      env:
                        - {{name: TRAINWRIGHT_CACHE_DIR, value: none}}
                        - {{name: SSL_CERT_FILE, value: {authority}}}
                      volumeMounts:
                        - {{name: initializer, mountPath: /workspace}}
"""


DATASET = b"1,2\n"
MODEL = noise(3 * 2**20)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def job(server: FileServer, tmp_path: Path, authority: Authority) -> str:
    if not PROBED.isolation["mount"]:
        pytest.skip(f"a volume at /workspace needs a mount namespace: {PROBED.reason}")
    volume = tmp_path / "volume"
    volume.mkdir()
    server.put("/train.csv", DATASET)
    server.put("/model.safetensors", MODEL)
    initializers = "".join(
        INITIALIZER.format(step=step, volume=volume, authority=authority.certificate) for step in ("dataset", "model")
    )
    return DOCUMENTS.format(initializers=initializers, volume=volume, url=server.url, dataset=sha256(DATASET))


def test_training_starts_with_what_was_fetched(trainwright: CommandLine, job: str) -> None:
    said = trainwright("run", "-", stdin=job)
    assert f"{sha256(DATASET)}  /workspace/dataset/train.csv" in said
    assert f"{sha256(MODEL)}  /workspace/model/model.safetensors" in said


def test_training_does_not_start_when_a_step_fails(trainwright: CommandLine, job: str, server: FileServer) -> None:
    server.put("/model.safetensors", b"", *[Answer(403)] * 10)
    said = trainwright("run", "-", stdin=job, code=1)
    assert "model.safetensors: the server refuses it (403): set ACCESS_TOKEN" in said
    assert "/workspace/dataset/train.csv" not in said
