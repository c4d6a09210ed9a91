"""How Go's structs are encoded as JSON: the order of their fields, and which empty fields are left out.

The reference and the API server hold objects as Go structs. How they write a struct, into an object or into a message,
is defined for each field; this module has these definitions as data. In: the name of a struct, such as `core.PodSpec`.
Out: its fields in order, each a `Field`. Kubernetes' and JobSet's structs come from `schemas/fields.json`, which `make
generate` writes; those of a TrainJob are here. An unknown struct has no fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

ZERO: Final = "z"
"""A scalar that is left out when it is zero: the struct cannot tell zero from "not set"."""
EMPTY: Final = "e"
"""A list or map that is left out when it is empty."""
POINTER: Final = "p"
"""Left out when it is not set; a zero stays."""
STRUCT: Final = "s"
"""An object that is written even when it is empty."""
TEXT: Final = "t"
"""Text that is written even when it is empty or not set."""
REQUIRED: Final = "r"
"""Always written; a list that is not set is written as null."""

LIST: Final = "[]"
MAP: Final = "{}"
QUANTITY: Final = "quantity"


class Field(NamedTuple):
    """One field: when it is left out, whether it is a list or a map, and the struct (or quantity) it holds, if any."""

    omits: str
    many: str
    type: str

    @classmethod
    def of(cls, code: str) -> Field:
        many = code[1:3] if code[1:3] in (LIST, MAP) else ""
        return cls(code[0], many, code[1 + len(many) :])


_TRAINER: Final[dict[str, dict[str, str]]] = {
    "trainer.RuntimeRef": {"name": "z", "apiGroup": "p", "kind": "p"},
    "trainer.EnvInjectionTarget": {"jobName": "z", "containerNames": "e[]"},
    "trainer.RuntimePatch": {"manager": "z", "time": "p", "trainingRuntimeSpec": "ptrainer.TrainingRuntimeSpecPatch"},
    "trainer.TrainingRuntimeSpecPatch": {"template": "ptrainer.JobSetTemplatePatch"},
    "trainer.JobSetTemplatePatch": {"metadata": "pmeta.ObjectMeta", "spec": "ptrainer.JobSetSpecPatch"},
    "trainer.JobSetSpecPatch": {"replicatedJobs": "e[]trainer.ReplicatedJobPatch"},
    "trainer.ReplicatedJobPatch": {"name": "z", "template": "ptrainer.JobTemplatePatch"},
    "trainer.JobTemplatePatch": {"metadata": "pmeta.ObjectMeta", "spec": "ptrainer.JobSpecPatch"},
    "trainer.JobSpecPatch": {"template": "ptrainer.PodTemplatePatch"},
    "trainer.PodTemplatePatch": {"metadata": "pmeta.ObjectMeta", "spec": "ptrainer.PodSpecPatch"},
    "trainer.PodSpecPatch": {
        "serviceAccountName": "p",
        "volumes": "e[]core.Volume",
        "initContainers": "e[]trainer.ContainerPatch",
        "containers": "e[]trainer.ContainerPatch",
        "imagePullSecrets": "e[]core.LocalObjectReference",
        "securityContext": "pcore.PodSecurityContext",
        "nodeSelector": "e{}",
        "affinity": "pcore.Affinity",
        "tolerations": "e[]core.Toleration",
        "schedulingGates": "e[]core.PodSchedulingGate",
        "terminationGracePeriodSeconds": "p",
    },
    "trainer.ContainerPatch": {
        "name": "z",
        "env": "e[]core.EnvVar",
        "volumeMounts": "e[]core.VolumeMount",
        "securityContext": "pcore.SecurityContext",
    },
    # Older generations
    "trainer.TargetJob": {"name": "z"},
    "trainer.PodTemplateOverride": {
        "targetJobs": "e[]trainer.TargetJob",
        "metadata": "pmeta.ObjectMeta",
        "spec": "ptrainer.PodSpecOverride",
    },
    "trainer.PodSpecOverride": {
        "targetJobs": "e[]trainer.TargetJob",
        "serviceAccountName": "p",
        "nodeSelector": "e{}",
        "affinity": "pcore.Affinity",
        "tolerations": "e[]core.Toleration",
        "volumes": "e[]core.Volume",
        "initContainers": "e[]trainer.ContainerPatch",
        "containers": "e[]trainer.ContainerPatch",
        "schedulingGates": "e[]core.PodSchedulingGate",
        "imagePullSecrets": "e[]core.LocalObjectReference",
    },
}


@cache
def _codes() -> dict[str, dict[str, str]]:
    file = Path(__file__).parent / "schemas" / "fields.json"
    return {**msgspec.json.decode(file.read_bytes(), type=dict[str, dict[str, str]]), **_TRAINER}


@cache
def fields_of(struct: str) -> Mapping[str, Field]:
    """The fields of a struct, in the order of their declaration."""
    return {name: Field.of(code) for name, code in _codes().get(struct, {}).items()}
