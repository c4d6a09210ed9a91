"""Rules for the volumes of a pod."""

from __future__ import annotations

from collections.abc import Callable

from trainwright.embedded.apiserver.builtin.downwardapi import VOLUME_FIELDS, field_reference, resource_reference
from trainwright.embedded.apiserver.builtin.mountrules import below_unreserved
from trainwright.embedded.apiserver.builtin.storage import validate_claim_spec
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_label_faults
from trainwright.schema.quantity import parse_quantity

MODE = "must be a number between 0 and 0777 (octal), both inclusive"
# The order in which kube-apiserver looks at sources: it reports every source after the first.
ORDER = ("emptyDir", "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "secret", "nfs", "iscsi")
HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def validate_volumes(volumes: list[Json], at: str, found: list[FieldError], *, account: bool) -> dict[str, Json]:
    """The volumes by name; faults are added to `found`. `account`: whether the pod has a service account."""
    known: dict[str, Json] = {}
    for index, volume in enumerate(volumes):
        where = f"{at}[{index}]"
        name = volume.get("name", "")
        if not name:
            found.append(field.required(f"{where}.name"))
        else:
            found += [field.invalid(f"{where}.name", name, text) for text in dns1123_label_faults(name)]
        if name in known:
            found.append(field.duplicate(f"{where}.name", name))
        known[name] = volume
        sources = [key for key in volume if key != "name"]
        sources.sort(key=lambda key: ORDER.index(key) if key in ORDER else len(ORDER))
        for extra in sources[1:]:
            found.append(field.forbidden(f"{where}.{extra}", "may not specify more than 1 volume type"))
        if not sources:
            found.append(field.required(where, "must specify a volume type"))
        for source, rules in _SOURCES.items():
            if volume.get(source) is not None:
                found += rules(volume[source], f"{where}.{source}")
        if volume.get("projected") is not None:
            found += _projected(volume["projected"], f"{where}.projected", account)
    return known


def _secret(source: Json, at: str) -> list[FieldError]:
    missing = [] if source.get("secretName") else [field.required(f"{at}.secretName")]
    return missing + _files(source, at)


def _config_map(source: Json, at: str) -> list[FieldError]:
    missing = [] if source.get("name") else [field.required(f"{at}.name")]
    return missing + _files(source, at)


def _host_path(source: Json, at: str) -> list[FieldError]:
    path = source.get("path")
    if not path:
        return [field.required(f"{at}.path")]
    found: list[FieldError] = []
    if ".." in path.split("/"):
        found.append(field.invalid(f"{at}.path", path, "must not contain '..'"))
    if source.get("type", "") not in HOST_PATHS:
        found.append(field.not_supported(f"{at}.type", source["type"], HOST_PATHS))
    return found


def _claim(source: Json, at: str) -> list[FieldError]:
    return [] if source.get("claimName") else [field.required(f"{at}.claimName")]


def _empty_dir(source: Json, at: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is None or not parse_quantity(limit) < parse_quantity("0"):
        return []
    return [field.forbidden(f"{at}.sizeLimit", "SizeLimit field must be a valid resource quantity")]


def _downward_api(source: Json, at: str) -> list[FieldError]:
    found = _mode(source, at)
    for item in source.get("items") or ():
        found += _own_file(item, at)
    return found


def _nfs(source: Json, at: str) -> list[FieldError]:
    found = [field.required(f"{at}.{name}") for name in ("server", "path") if not source.get(name)]
    path = source.get("path", "")
    if not path.startswith("/"):
        found.append(field.invalid(f"{at}.path", path, "must be an absolute path"))
    return found


def _csi(source: Json, at: str) -> list[FieldError]:
    return [] if source.get("driver") else [field.required(f"{at}.driver")]


def _ephemeral(source: Json, at: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [field.required(f"{at}.volumeClaimTemplate")]
    return validate_claim_spec(template.get("spec") or {}, f"{at}.volumeClaimTemplate.spec")


def _image(source: Json, at: str) -> list[FieldError]:
    return [] if source.get("reference") else [field.required(f"{at}.reference")]


_SOURCES: dict[str, Callable[[Json, str], list[FieldError]]] = {
    "secret": _secret,
    "configMap": _config_map,
    "hostPath": _host_path,
    "persistentVolumeClaim": _claim,
    "emptyDir": _empty_dir,
    "downwardAPI": _downward_api,
    "nfs": _nfs,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}


def _mode(source: Json, at: str) -> list[FieldError]:
    mode = source.get("defaultMode")
    return [] if mode is None or 0 <= mode <= 0o777 else [field.invalid(f"{at}.defaultMode", mode, MODE)]


def _files(source: Json, at: str) -> list[FieldError]:
    """The mode and the items of a source whose keys become files."""
    found = _mode(source, at)
    for index, item in enumerate(source.get("items") or ()):
        where = f"{at}.items[{index}]"
        if not item.get("key"):
            found.append(field.required(f"{where}.key"))
        if not item.get("path"):
            found.append(field.required(f"{where}.path"))
        else:
            found += [field.invalid(f"{where}.path", item["path"], text) for text in below_unreserved(item["path"])]
        if item.get("mode") is not None and not 0 <= item["mode"] <= 0o777:
            found.append(field.invalid(f"{where}.mode", item["mode"], MODE))
    return found


def _own_file(item: Json, at: str) -> list[FieldError]:
    """The rules of a file that holds a field of the pod. kube-apiserver leaves the item's index out of the path."""
    found: list[FieldError] = []
    path, reference, resource = item.get("path", ""), item.get("fieldRef"), item.get("resourceFieldRef")
    if not path:
        found.append(field.required(f"{at}.path"))
    found += [field.invalid(f"{at}.path", path, text) for text in below_unreserved(path)]
    if reference is not None:
        found += field_reference(reference, f"{at}.fieldRef", VOLUME_FIELDS)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(field.invalid(at, "resource", text))
    elif resource is not None:
        found += resource_reference(resource, f"{at}.resourceFieldRef", volume=True)
    else:
        found.append(field.required(at, "one of fieldRef and resourceFieldRef is required"))
    if item.get("mode") is not None and not 0 <= item["mode"] <= 0o777:
        found.append(field.invalid(f"{at}.mode", item["mode"], MODE))
    return found


def _projected(source: Json, at: str, account: bool) -> list[FieldError]:
    found = _mode(source, at)
    paths: set[str] = set()

    def take(path: str, shown: str) -> None:
        if path and path in paths:
            found.append(field.invalid(at, shown, "conflicting duplicate paths"))
        paths.add(path)

    for index, entry in enumerate(source.get("sources") or ()):
        where = f"{at}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if entry.get(kind) is not None:
                name = entry[kind].get("name", "")
                if not name:
                    found.append(field.required(f"{where}.{kind}.name"))
                found += _files(entry[kind], f"{where}.{kind}")
                for item in entry[kind].get("items") or ():
                    take(item.get("path", ""), name)
        for item in (entry.get("downwardAPI") or {}).get("items") or ():
            found += _own_file(item, f"{where}.downwardAPI")
            take(item.get("path", ""), item.get("path", ""))
        if entry.get("serviceAccountToken") is not None:
            found += _token(entry["serviceAccountToken"], f"{where}.serviceAccountToken", at, account)
        if len(entry) > 1:
            found.append(field.forbidden(where, "may not specify more than 1 volume type per source"))
    return found


def _token(token: Json, at: str, projected: str, account: bool) -> list[FieldError]:
    found: list[FieldError] = []
    seconds, path = token.get("expirationSeconds") or 0, token.get("path", "")
    if seconds < 600:
        text = "may not specify a duration less than 10 minutes"
        found.append(field.invalid(f"{at}.expirationSeconds", seconds, text))
    if seconds > 1 << 32:
        text = "may not specify a duration larger than 2^32 seconds"
        found.append(field.invalid(f"{at}.expirationSeconds", seconds, text))
    if not path:
        found.append(field.required(f"{projected}.path"))
    found += [field.invalid(f"{projected}.path", path, text) for text in below_unreserved(path)]
    if not account:
        found.append(field.forbidden(at, "must not be specified when serviceAccountName is not set"))
    return found
