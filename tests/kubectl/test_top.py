"""kubectl top on the local cluster, which serves metrics.k8s.io itself."""

from __future__ import annotations

import json

import pytest

from kubectl.kubectl import Kubectl
from waiting import eventually

POD = """
apiVersion: v1
kind: Pod
metadata: {name: busy, labels: {kind: busy}}
spec:
  restartPolicy: Never
  containers:
  - {name: works, image: x, command: [python3, -c, "x = bytearray(100_000_000)\\nwhile True: pass"]}
  - {name: rests, image: x, command: [sleep, "1000"]}
"""


@pytest.fixture(scope="module")
def busy(kubectl: Kubectl) -> str:
    assert kubectl("apply", "-f", "-", stdin=POD).code == 0
    assert kubectl("wait", "pod/busy", "--for=condition=Ready", "--timeout=30s").code == 0
    eventually("its memory to be there", lambda: int(cells(kubectl)["works"][1].removesuffix("Mi")) > 90)
    return "busy"


def cells(kubectl: Kubectl) -> dict[str, list[str]]:
    lines = kubectl("top", "pod", "busy", "--containers", "--no-headers").out.splitlines()
    return {words[1]: words[2:] for words in map(str.split, lines)} or {"works": ["0m", "0Mi"]}


def test_top_pod_shows_cpu_and_memory_of_each_container(kubectl: Kubectl, busy: str) -> None:
    shown = cells(kubectl)
    assert int(shown["works"][0].removesuffix("m")) > 50
    assert 90 < int(shown["works"][1].removesuffix("Mi")) < 140
    assert int(shown["rests"][0].removesuffix("m")) < 10
    assert int(shown["rests"][1].removesuffix("Mi")) < 5
    assert kubectl("top", "pod", "-l", "kind=busy").out.splitlines()[0].split() == [
        "NAME",
        "CPU(cores)",
        "MEMORY(bytes)",
    ]
    assert kubectl("top", "pod", "-l", "kind=other").out == ""
    assert kubectl("top", "pod", "nobody").err == (
        'Error from server (NotFound): podmetrics.metrics.k8s.io "nobody" not found\n'
    )


def test_top_node_shows_the_machine(kubectl: Kubectl, busy: str) -> None:
    name, cpu, share, *_ = kubectl("top", "node", "--no-headers").out.split()
    assert name == "local"
    assert int(cpu.removesuffix("m")) > 50
    assert share.endswith("%")


def test_the_group_is_found_and_its_objects_have_their_form(kubectl: Kubectl, busy: str) -> None:
    assert "metrics.k8s.io/v1beta1" in kubectl("api-versions").out.splitlines()
    pod = json.loads(kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/busy").out)
    assert (pod["kind"], pod["metadata"]["labels"]) == ("PodMetrics", {"kind": "busy"})
    assert {container["name"] for container in pod["containers"]} == {"works", "rests"}
    everywhere = json.loads(kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/pods").out)
    assert [item["metadata"]["name"] for item in everywhere["items"]] == ["busy"]
    assert kubectl("delete", "pod", "busy", "--grace-period=0", "--force").code == 0
    eventually("it to be gone", lambda: kubectl("top", "pod").out == "")
