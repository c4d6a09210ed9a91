"""Values inside messages, spelled as the reference's typed objects print them.

The reference answers from Go structs: fields come in the order of their declaration, an empty one is left out,
amounts are canonical. Clients compare these texts, so ours are made the same way. In: plain JSON or our own Structs.
Out: text, and `FieldError`s that carry it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trainwright.api.trainjob import RuntimeRef
from trainwright.pipeline.info import Info
from trainwright.schema.errors import OMITTED, ErrorType, FieldError
from trainwright.schema.gotext import json_text
from trainwright.schema.quantity import QuantityError, parse_quantity

_ORDER = (
    # A runtime reference, a patch and what lies in it
    *("manager", "time", "trainingRuntimeSpec", "jobName", "containerNames"),
    *("metadata", "name", "namespace", "apiGroup", "apiVersion", "kind", "labels", "annotations", "finalizers"),
    *("targetJobs", "replicas", "template", "spec", "replicatedJobs"),
    # A pod spec patch
    *("serviceAccountName", "volumes", "initContainers"),
    # A container
    *("image", "command", "args", "workingDir", "ports", "hostPort", "containerPort", "protocol", "hostIP", "envFrom"),
    *("env", "containers", "imagePullSecrets", "value", "valueFrom", "fieldRef", "fieldPath", "resourceFieldRef"),
    *("containerName", "resource", "divisor", "configMapKeyRef", "secretKeyRef", "fileKeyRef", "key", "optional"),
    *("resources", "limits", "requests", "claims", "resizePolicy", "restartPolicy", "restartPolicyRules"),
    *("readOnly", "recursiveReadOnly", "mountPath", "subPath", "mountPropagation", "subPathExpr", "volumeMounts"),
    *("volumeDevices", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "terminationMessagePath"),
    *("terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin", "stdinOnce", "tty"),
    # The rest of a pod spec patch
    *("terminationGracePeriodSeconds", "nodeSelector", "affinity", "tolerations", "schedulingGates"),
)
_PLACES = {name: place for place, name in enumerate(_ORDER)}
_MAPS = frozenset({"labels", "annotations", "nodeSelector", "matchLabels"})
_AMOUNTS = frozenset({"limits", "requests"})


def json_of(value: Any) -> str:
    """JSON in the reference's field order, without empty members."""
    return _text(msgspec.to_builtins(value))


def _text(value: Any, key: str = "") -> str:
    if isinstance(value, dict):
        if key in _AMOUNTS:
            return json_text({name: _amount(item) for name, item in value.items()})
        if key in _MAPS:
            return json_text(value)
        names = sorted(value, key=lambda name: (_PLACES.get(name, len(_PLACES)), name))
        members = (f"{json_text(name)}:{_text(value[name], name)}" for name in names if not _is_empty(value[name]))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_text(item) for item in value) + "]"
    return json_text(value)


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == [] or value is False


def _amount(value: Any) -> str:
    try:
        return str(parse_quantity(value))
    except QuantityError:
        return str(value)


def requirements_text(requirements: Mapping[str, Any] | None) -> str:
    """A ResourceRequirements, or `null`."""
    return "null" if requirements is None else _text(dict(requirements))


def runtime_ref_text(ref: RuntimeRef) -> str:
    """A runtime reference with all its members."""
    return _text({"name": ref.name, "apiGroup": ref.api_group, "kind": ref.kind})


def containers_text(containers: Sequence[Mapping[str, Any]]) -> str:
    """Containers of a pod template; `resources` is always written."""
    return _text([{"resources": {}, **container} for container in containers])


def invalid_value(field: str, text: str, detail: str) -> FieldError:
    """`field: Invalid value: text: detail`, the value being text already."""
    return FieldError(ErrorType.INVALID, field, OMITTED, f"{text}: {detail}")


def reserved_env(info: Info, reserved: Sequence[str]) -> Iterator[FieldError]:
    """The TrainJob sets variables that a framework keeps for itself (I5)."""
    env = info.trainer_spec.env or []
    taken = sorted({str(variable.get("name")) for variable in env} & set(reserved))
    if taken:
        detail = f"must not have reserved envs, invalid envs configured: [{' '.join(taken)}]"
        yield invalid_value("spec.trainer.env", _text(list(env)), detail)
