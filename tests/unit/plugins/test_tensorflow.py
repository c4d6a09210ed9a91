"""The TensorFlow plugin: TF_CONFIG for runtimes with its label, and for no other."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from unit.pipeline.objects import container, env, jobset, runtime, trainjob

LABEL = "trainer.kubeflow.org/framework"


def labelled(framework: str, policy: Any = None) -> Any:
    of = runtime(policy=policy)
    return msgspec.structs.replace(of, metadata=msgspec.structs.replace(of.metadata, labels={LABEL: framework}))


def test_every_worker_finds_all_workers_and_its_own_place() -> None:
    made = jobset(trainjob({"numNodes": 3}), labelled("tensorflow"))
    names = list(env(made))
    assert names.index("TF_WORKER_INDEX") < names.index("TF_CONFIG"), "Kubernetes expands only what comes before"
    text = env(made)["TF_CONFIG"].replace("$(TF_WORKER_INDEX)", "2")
    workers = [f"tj-node-0-{number}.tj:29500" for number in range(3)]
    assert json.loads(text) == {"cluster": {"worker": workers}, "task": {"type": "worker", "index": 2}}
    assert container(made)["ports"] == [{"containerPort": 29500}]


def test_a_trainjob_that_brings_its_own_configuration_keeps_it() -> None:
    own = {"name": "TF_CONFIG", "value": "{}"}
    assert env(jobset(trainjob({"numNodes": 3, "env": [own]}), labelled("tensorflow")))["TF_CONFIG"] == "{}"


@pytest.mark.parametrize(("framework", "policy"), [("plain", None), ("tensorflow", {"numNodes": 1, "torch": {}})])
def test_other_runtimes_render_as_before(framework: str, policy: Any) -> None:
    assert "TF_CONFIG" not in env(jobset(trainjob({"numNodes": 3}), labelled(framework, policy)))
