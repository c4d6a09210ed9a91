"""Rules for the mounts of a container."""

from __future__ import annotations

from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json

PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def validate_mounts(container: Json, at: str, volumes: dict[str, Json]) -> list[FieldError]:
    found: list[FieldError] = []
    paths: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{at}[{index}]"
        name, path = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(field.required(f"{where}.name"))
        if name not in volumes:
            found.append(field.not_found(f"{where}.name", name))
        if not path:
            found.append(field.required(f"{where}.mountPath"))
        if path in paths:
            found.append(field.invalid(f"{where}.mountPath", path, "must be unique"))
        paths.add(path)
        if mount.get("subPath") and mount.get("subPathExpr"):
            text = "subPathExpr and subPath are mutually exclusive"
            found.append(field.invalid(f"{where}.subPathExpr", mount["subPathExpr"], text))
        # kube-apiserver leaves the index out of the following paths.
        for member in ("subPath", "subPathExpr"):
            if mount.get(member):
                found += [field.invalid(f"{at}.{member}", mount[member], text) for text in below(mount[member])]
        found += _modes(mount, container, at)
    return found


def _modes(mount: Json, container: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None and propagation not in PROPAGATIONS:
        found.append(field.not_supported(f"{at}.mountPropagation", propagation, PROPAGATIONS))
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        text = "Bidirectional mount propagation is available only to privileged containers"
        found.append(field.forbidden(f"{at}.mountPropagation", text))
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            found.append(field.forbidden(f"{at}.recursiveReadOnly", "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            text = "may only be specified when mountPropagation is None or not specified"
            found.append(field.forbidden(f"{at}.recursiveReadOnly", text))
    elif recursive not in (None, "Disabled"):
        found.append(field.not_supported(f"{at}.recursiveReadOnly", recursive, RECURSIVE))
    return found


def below(path: str) -> list[str]:
    """The faults of a path that must stay below a directory: relative, without `..`."""
    found = ["must be a relative path"] if path.startswith("/") else []
    return found + (["must not contain '..'"] if ".." in path.split("/") else [])


def below_unreserved(path: str) -> list[str]:
    """The same for files that the kubelet writes, which reserves names that start with two dots."""
    reserved = path.startswith("..") and not path.startswith("../")
    return below(path) + (["must not start with '..'"] if reserved else [])
