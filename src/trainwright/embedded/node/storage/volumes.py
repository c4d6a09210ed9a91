"""A pod's volumes: the content of each, and where each container mounts it.

In: a pod and the ConfigMaps and Secrets it names. Out: `Volume`s, each a directory of this machine with the files to
write into it, and for a container the `Mount`s that its keeper makes. All pure but `write`, which writes the files.
Invariant: no file name from a ConfigMap, Secret, `items` path or subPath leads out of its volume.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.embedded.node.pods.record import Mount
from trainwright.embedded.node.podspec.environment import (
    Facts,
    Sources,
    Unresolved,
    field_value,
    resource_value,
)
from trainwright.schema.expansion import expand
from trainwright.schema.jsonobject import Json

DEFAULT_MODE = 0o644


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    mode: int = DEFAULT_MODE


@dataclass(frozen=True, slots=True)
class Volume:
    """A directory (or a hostPath's file) of this machine. `make` is false if it must exist already."""

    path: Path
    files: Mapping[str, File] = field(default_factory=dict)
    make: bool = True


def volumes(pod: Json, directory: Path, sources: Sources, facts: Facts, tokens: Mapping[str, str]) -> dict[str, Volume]:
    """Every volume of the pod, by name. `tokens` are service-account tokens by volume name and path; a volume gets no
    file for a token that is missing there.
    """
    found: dict[str, Volume] = {}
    for volume in pod["spec"].get("volumes") or ():
        name = volume["name"]
        if host_path := volume.get("hostPath"):
            found[name] = _host_path(name, host_path)
            continue
        if name in sources.directories:
            found[name] = Volume(sources.directories[name])
            continue
        files: dict[str, File] = {}
        for source, mode in _file_sources(volume):
            files.update(_files(source, mode, name, pod, sources, facts, tokens))
        found[name] = Volume(directory / name, files)
    return found


def has_own_files(volume: Json) -> bool:
    """Whether the volume has files that the node writes."""
    return bool(_file_sources(volume))


def has_files(pod: Json) -> bool:
    """Whether a volume of the pod has files from ConfigMaps or Secrets, which may change while it runs."""
    sources = (source for volume in pod["spec"].get("volumes") or () for source, _ in _file_sources(volume))
    return any(source.get("configMap") or source.get("secret") for source in sources)


def _host_path(name: str, host_path: Json) -> Volume:
    path, kind = Path(host_path["path"]), host_path.get("type", "")
    make = kind == "DirectoryOrCreate"
    there = {"Directory": path.is_dir(), "File": path.is_file(), "": path.exists()}.get(kind, make)
    if not there and not make:
        raise Unresolved(f"volume {name}: hostPath {path} does not exist, or is not a {kind or 'file or directory'}")
    return Volume(path, make=make)


def _file_sources(volume: Json) -> list[tuple[Json, int]]:
    """The sources of a volume's files, each with its default mode."""
    if projected := volume.get("projected"):
        return [(source, projected.get("defaultMode", DEFAULT_MODE)) for source in projected.get("sources") or ()]
    for kind in ("configMap", "secret", "downwardAPI"):
        if kind in volume:
            return [(volume, volume[kind].get("defaultMode", DEFAULT_MODE))]
    return []


def _files(
    source: Json, mode: int, name: str, pod: Json, sources: Sources, facts: Facts, tokens: Mapping[str, str]
) -> dict[str, File]:
    if config_map := source.get("configMap"):
        data = sources.config_map(config_map["name"], optional=config_map.get("optional", False))
        return _selected(data, config_map, mode)
    if secret := source.get("secret"):
        secret_name = secret.get("secretName") or secret["name"]
        return _selected(sources.secret(secret_name, optional=secret.get("optional", False)), secret, mode)
    if token := source.get("serviceAccountToken"):
        path = _inside(token["path"])
        text = tokens.get(f"{name}/{token['path']}")
        return {} if text is None else {path: File(text.encode(), mode)}
    files = {}
    for item in source["downwardAPI"].get("items") or ():
        if reference := item.get("fieldRef"):
            text = field_value(reference["fieldPath"], pod, facts)
        else:
            text = resource_value(item["resourceFieldRef"], pod["spec"]["containers"][0], pod, facts)
        files[_inside(item["path"])] = File(text.encode(), item.get("mode", mode))
    return files


def _selected(data: Mapping[str, bytes], source: Json, mode: int) -> dict[str, File]:
    """All keys as files, or those that `items` selects, at the paths it gives them."""
    if not (items := source.get("items")):
        return {_inside(key): File(content, mode) for key, content in data.items()}
    files = {}
    for item in items:
        if item["key"] in data:
            files[_inside(item["path"])] = File(data[item["key"]], item.get("mode", mode))
        elif not source.get("optional", False):
            raise Unresolved(f"references non-existent config key: {item['key']}")
    return files


def _inside(path: str) -> str:
    """The path, if it stays inside the volume; raises `Unresolved` otherwise."""
    if os.path.isabs(path) or ".." in Path(path).parts or not path:
        raise Unresolved(f"path {path!r} leads out of its volume")
    return path


def mounts(container: Json, found: Mapping[str, Volume], variables: Mapping[str, str]) -> list[Mount]:
    """The container's mounts."""
    result: list[Mount] = []
    for mount in container.get("volumeMounts") or ():
        volume = found.get(mount["name"])
        if volume is None:
            raise Unresolved(
                f"container {container['name']} mounts volume {mount['name']}, which the pod does not have"
            )
        source = volume.path
        below = mount.get("subPath") or expand(mount.get("subPathExpr", ""), variables)
        if below:
            source = source / _inside(below)
        result.append({"source": str(source), "target": mount["mountPath"], "readOnly": mount.get("readOnly", False)})
    return result


DATA = "..data"


def replace_files(volume: Path, files: Mapping[str, File]) -> None:
    """Gives a volume these files, all at one moment, in a kubelet's layout.

    The files lie in a directory of their own, to which the link `..data` leads, and every name in the volume is a link
    through `..data`. To replace them is to replace that one link.
    """
    volume.mkdir(parents=True, exist_ok=True)
    before = os.readlink(volume / DATA) if (volume / DATA).is_symlink() else None
    directory = Path(tempfile.mkdtemp(prefix="..", dir=volume))
    directory.chmod(0o755)
    for name, file in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        path.chmod(file.mode)
    new = volume / "..data_tmp"
    new.unlink(missing_ok=True)
    new.symlink_to(directory.name)
    os.replace(new, volume / DATA)
    wanted = {Path(name).parts[0] for name in files}
    for name in wanted:
        if not (volume / name).is_symlink():
            (volume / name).symlink_to(f"{DATA}/{name}")
    for entry in os.scandir(volume):
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in wanted:
            os.unlink(entry.path)
    if before is not None:
        shutil.rmtree(volume / before, ignore_errors=True)


def write(found: Mapping[str, Volume], mounted: list[Mount]) -> None:
    """Makes the directories and files. A subPath that does not exist becomes a directory, as with a kubelet."""
    for volume in found.values():
        if volume.make:
            volume.path.mkdir(parents=True, exist_ok=True)
        if volume.files:
            replace_files(volume.path, volume.files)
    for mount in mounted:
        source = Path(mount["source"])
        if not source.exists():
            source.mkdir(parents=True)
