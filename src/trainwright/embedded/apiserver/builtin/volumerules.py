"""Rules for the volumes of a pod."""

from __future__ import annotations

from ....schema import errors as field
from ....schema.errors import FieldError
from ....schema.names import dns1123_label_faults
from ....schema.quantity import parse_quantity
from ..errors import Json
from .containerrules import path_faults

MODE = "must be a number between 0 and 0777 (octal), both inclusive"
# The order in which kube-apiserver looks at sources: the second it meets is one too many.
ORDER = ("emptyDir", "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "secret", "nfs", "iscsi")
HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def validate_volumes(volumes: list[Json], at: str, found: list[FieldError], *, account: bool) -> dict[str, Json]:
    """The volumes by name; faults go to `found`. `account` tells whether the pod has a service account."""
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
        found += _source(volume, where)
        if volume.get("projected") is not None:
            found += _projected(volume["projected"], f"{where}.projected", account)
    return known


def _source(volume: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    secret, config_map, host_path = volume.get("secret"), volume.get("configMap"), volume.get("hostPath")
    if secret is not None:
        if not secret.get("secretName"):
            found.append(field.required(f"{at}.secret.secretName"))
        found += _files(secret, f"{at}.secret")
    if config_map is not None:
        if not config_map.get("name"):
            found.append(field.required(f"{at}.configMap.name"))
        found += _files(config_map, f"{at}.configMap")
    if host_path is not None:
        if not host_path.get("path"):
            found.append(field.required(f"{at}.hostPath.path"))
        if host_path.get("type", "") not in HOST_PATHS:
            found.append(field.not_supported(f"{at}.hostPath.type", host_path["type"], HOST_PATHS))
    claim = volume.get("persistentVolumeClaim")
    if claim is not None and not claim.get("claimName"):
        found.append(field.required(f"{at}.persistentVolumeClaim.claimName"))
    limit = (volume.get("emptyDir") or {}).get("sizeLimit")
    if limit is not None and parse_quantity(limit) < parse_quantity("0"):
        text = "SizeLimit field must be a valid resource quantity"
        found.append(field.forbidden(f"{at}.emptyDir.sizeLimit", text))
    return found


def _files(source: Json, at: str) -> list[FieldError]:
    """Mode and items of what becomes files."""
    found: list[FieldError] = []
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= 0o777:
        found.append(field.invalid(f"{at}.defaultMode", mode, MODE))
    for index, item in enumerate(source.get("items") or ()):
        where = f"{at}.items[{index}]"
        if not item.get("key"):
            found.append(field.required(f"{where}.key"))
        if not item.get("path"):
            found.append(field.required(f"{where}.path"))
        else:
            found += [field.invalid(f"{where}.path", item["path"], text) for text in path_faults(item["path"])]
        if item.get("mode") is not None and not 0 <= item["mode"] <= 0o777:
            found.append(field.invalid(f"{where}.mode", item["mode"], MODE))
    return found


def _projected(source: Json, at: str, account: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for index, entry in enumerate(source.get("sources") or ()):
        where = f"{at}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if entry.get(kind) is not None:
                if not entry[kind].get("name"):
                    found.append(field.required(f"{where}.{kind}.name"))
                found += _files(entry[kind], f"{where}.{kind}")
        token = entry.get("serviceAccountToken")
        if token is not None:
            if not token.get("path"):
                found.append(field.required(f"{at}.path"))
            if not account:
                text = "must not be specified when serviceAccountName is not set"
                found.append(field.forbidden(f"{where}.serviceAccountToken", text))
    return found
