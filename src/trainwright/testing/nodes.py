"""The configuration of KWOK, whose fake nodes let pods complete, fail or hang as a test asks.

In: nothing but names. Out: KWOK's configuration (own stages: the built-in ones end every pod of a Job
at once) and Node objects. A pod says how it wants to end, in the annotation `OUTCOME_ANNOTATION` of its template or
in an environment variable `OUTCOME_VARIABLE` of its first container (what a TrainJob's `spec.trainer.env` can set):

    complete   Running, then Succeeded after half a second (the default)
    fail       Running, then Failed with exit code 1 after half a second
    hang       Running until it is deleted
    pending    never started
"""

from __future__ import annotations

import json
from pathlib import Path

from trainwright.schema.jsonobject import Json

OUTCOME_ANNOTATION = "testing.trainwright.dev/outcome"
OUTCOME_VARIABLE = "TRAINWRIGHT_TEST_OUTCOME"

LOG_LINES = ("loss=0.75", "loss=0.50", "loss=0.25")

RUN_MILLISECONDS = 500

# In KWOK's jq dialect: the annotation, else the variable, else "complete".
_OUTCOME = (
    f'.metadata.annotations["{OUTCOME_ANNOTATION}"] // '
    f'(.spec.containers[0].env // [] | map(select(.name == "{OUTCOME_VARIABLE}")) | .[0].value) // "complete"'
)

_RUNNING = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName (or .spec.hostNetwork false) (or .metadata.uid "") (or .metadata.name "") (or .metadata.namespace "") | Quote }}
conditions:
{{ range $type := (list "Initialized" "Ready" "ContainersReady") }}
- type: {{ $type }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
  state:
    terminated:
      exitCode: 0
      reason: Completed
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
"""  # noqa: E501 - one line of KWOK's template language

_ENDED = """
{{ $now := Now }}
phase: PHASE
conditions:
{{ range $type := (list "Ready" "ContainersReady") }}
- type: {{ $type }}
  status: "False"
  reason: PodCompleted
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: EXIT_CODE
      reason: REASON
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
"""


def kwok_configuration(log_file: Path) -> str:
    """A multi-document file for `kwok --config`; every container's log is `log_file`."""
    alive = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    running = {"key": ".status.phase", "operator": "In", "values": ["Running"]}
    documents = [
        _stage(
            "pod-run",
            [
                alive,
                {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
                {"key": _OUTCOME, "operator": "NotIn", "values": ["pending"]},
            ],
            {"statusTemplate": _RUNNING},
        ),
        _stage(
            "pod-complete",
            [alive, running, {"key": _OUTCOME, "operator": "In", "values": ["complete"]}],
            {"statusTemplate": _ended("Succeeded", 0, "Completed")},
            delay=RUN_MILLISECONDS,
        ),
        _stage(
            "pod-fail",
            [alive, running, {"key": _OUTCOME, "operator": "In", "values": ["fail"]}],
            {"statusTemplate": _ended("Failed", 1, "Error")},
            delay=RUN_MILLISECONDS,
        ),
        _stage(
            "pod-delete",
            [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}],
            {"delete": True},
        ),
        {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterLogs",
            "metadata": {"name": "all"},
            "spec": {"logs": [{"logsFile": str(log_file)}]},
        },
    ]
    return "\n---\n".join(json.dumps(document) for document in documents)


def container_log() -> str:
    """`LOG_LINES` in the form in which a container runtime writes them to disk."""
    return "".join(f"2026-01-01T00:00:0{n}.000000000Z stdout F {line}\n" for n, line in enumerate(LOG_LINES))


def node(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": {"cpu": "10000", "memory": "10Ti", "pods": "100000", "nvidia.com/gpu": "10000"},
            "capacity": {"cpu": "10000", "memory": "10Ti", "pods": "100000", "nvidia.com/gpu": "10000"},
        },
    }


def _ended(phase: str, exit_code: int, reason: str) -> str:
    return _ENDED.replace("PHASE", phase).replace("EXIT_CODE", str(exit_code)).replace("REASON", reason)


def _stage(name: str, expressions: list[Json], next_: Json, delay: int = 0) -> Json:
    spec: Json = {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": {"matchExpressions": expressions},
        "next": next_,
    }
    if delay:
        spec["delay"] = {"durationMilliseconds": delay}
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}
