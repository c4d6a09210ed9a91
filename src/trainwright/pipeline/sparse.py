"""A template as its typed object would be written: a copy in which an optional field with nothing in it is left out.

The reference passes templates through typed structs, so `value: ""` or `maxRestarts: 0` is the same as no such field,
while a field that knows "unset" (a pointer there) keeps its zero, and amounts are canonical. Both spellings of one
template must give the same bytes, and a patch with an empty list must not empty the list it is merged into. Fields we
do not know are never touched.
"""

from __future__ import annotations

from typing import Any

from trainwright.schema.quantity import QuantityError, parse_quantity

# Optional scalars whose zero means "not set". Everything else keeps its zero: most booleans and numbers of a pod are
# pointers in the API, and `runAsUser: 0` is a wish.
_ZERO_IS_UNSET = frozenset(
    {
        # JobSet
        *("maxRestarts", "subdomain", "groupName", "jobIndex", "podIndex"),
        # Pod
        *(
            "restartPolicy",
            "dnsPolicy",
            "serviceAccountName",
            "serviceAccount",
            "nodeName",
            "hostname",
            "schedulerName",
        ),
        *("priorityClassName", "hostNetwork", "hostPID", "hostIPC"),
        # Container
        *("image", "workingDir", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy"),
        *("stdin", "stdinOnce", "tty", "hostPort", "hostIP", "protocol", "subPath", "subPathExpr", "readOnly"),
        # Probes and handlers
        *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
        *("host", "scheme"),
        # Tolerations and volumes
        *("operator", "effect", "medium", "secretName", "audience", "fsType"),
        # Metadata
        *("name", "generateName", "namespace"),
    }
)
_VALUE_IS_REQUIRED = frozenset({"sysctls", "httpHeaders"})
_AMOUNTS = frozenset({"limits", "requests", "overhead"})
_FREE_MAPS = frozenset({"labels", "annotations", "nodeSelector", "matchLabels"}) | _AMOUNTS

_EMPTY_IN_PATCH = _FREE_MAPS | {"metadata", "spec", "template"}


def sparse(node: Any, owner: str = "", *, is_patch: bool = False) -> Any:
    """A deep copy of a JSON value without unset fields; `owner` is the field it stands in.

    In a patch an empty list or map says nothing either, since it could only be read as "make it empty".
    """
    if isinstance(node, dict):
        if owner in _AMOUNTS:
            return {name: amount(value) for name, value in node.items()}
        if owner in _FREE_MAPS:
            return dict(node)
        copy = {}
        for name, value in node.items():
            if value is None or (is_patch and (value == [] or (value == {} and name in _EMPTY_IN_PATCH))):
                continue
            if not value and not isinstance(value, dict | list):
                if name in _ZERO_IS_UNSET or (name == "value" and owner not in _VALUE_IS_REQUIRED):
                    continue
            elif name == "resourceFieldRef" and isinstance(value, dict):
                value = {**value, "divisor": amount(value.get("divisor", "0"))}
            elif name == "sizeLimit":
                value = amount(value)
            copy[name] = sparse(value, name, is_patch=is_patch)
        return copy
    if isinstance(node, list):
        return [sparse(item, owner, is_patch=is_patch) for item in node]
    return node


def amount(value: Any) -> Any:
    """A quantity as the API writes it; what is none stays as it is, for validation to judge."""
    try:
        return str(parse_quantity(value)) if isinstance(value, str | int | float) else value
    except QuantityError:
        return value
