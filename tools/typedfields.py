"""How Go's API types write their fields, read off the source of their modules.

In: the directories of k8s.io/api, k8s.io/apimachinery and JobSet. Out: for each struct that a JobSet's spec can hold,
its fields in the order of their declaration, each with a code of three parts: what is left out, what holds several
values, and the struct or quantity inside. `trainwright.api.fields` says what the codes mean.
"""

from __future__ import annotations

import re
from pathlib import Path

Fields = dict[str, dict[str, str]]

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^type (\w+)(?: =)? ([^\s{]+)$", re.MULTILINE)
_FIELD = re.compile(r"^\t(?:(\w+)\s+)?(\S+)\s+`([^`]*)`", re.MULTILINE)
_JSON = re.compile(r'json:"([^"]*)"')
_SCALARS = {"string", "bool", "byte", "int", "int32", "int64", "uint", "uint32", "uint64", "float32", "float64"}
_PLAIN = {"meta.Time", "meta.MicroTime", "intstr.IntOrString", "meta.FieldsV1"}
_PACKAGES = {"v1": "core", "corev1": "core", "batchv1": "batch", "metav1": "meta"}
_NOT_WRITTEN = {"managedFields"}
ROOT = "jobset.JobSetSpec"


class Source:
    """The declarations of several packages, by `package.Name`."""

    def __init__(self, packages: dict[str, list[Path]]) -> None:
        self.structs: dict[str, str] = {}
        self.named: dict[str, str] = {}
        for package, files in packages.items():
            for file in files:
                text = file.read_text()
                self.structs |= {f"{package}.{name}": body for name, body in _STRUCT.findall(text)}
                self.named |= {f"{package}.{name}": kind for name, kind in _NAMED.findall(text)}

    def fields(self, name: str) -> dict[str, str]:
        package = name.split(".")[0]
        found: dict[str, str] = {}
        for field, kind, tags in _FIELD.findall(self.structs[name]):
            json = _JSON.search(tags)
            names = json[1].split(",") if json else ["-"]
            if not field and not names[0]:  # embedded: its fields are written as this struct's own
                found |= self.fields(_qualified(kind.lstrip("*"), package))
            elif names[0] not in {"", "-"} | _NOT_WRITTEN:
                found[names[0]] = self.code(kind, package, set(names[1:]))
        return found

    def code(self, kind: str, package: str, options: set[str]) -> str:
        omits = "omitempty" in options
        if kind.startswith("*"):
            return "p" + self.inner(_qualified(kind[1:], package))
        kind = _qualified(kind, package)
        while kind in self.named:
            kind = _qualified(self.named[kind], kind.split(".")[0])
        if kind.startswith(("[]", "map[")):
            many, inner = ("[]", kind[2:]) if kind.startswith("[]") else ("{}", kind.split("]", 1)[1])
            return ("e" if omits else "r") + many + self.inner(_qualified(inner, package))
        if kind in _SCALARS:
            return "z" if omits else "t" if kind == "string" else "r"
        if kind == "intstr.IntOrString":
            return "r"
        if "omitzero" in options:
            return "p" + self.inner(kind)
        return "s" + self.inner(kind)

    def inner(self, kind: str) -> str:
        while kind in self.named:
            kind = _qualified(self.named[kind], kind.split(".")[0])
        if kind == "resource.Quantity":
            return "quantity"
        return "" if kind in _SCALARS | _PLAIN else kind


def _qualified(kind: str, package: str) -> str:
    """A type with its package, under the names used here."""
    if kind.startswith(("[]", "map[")) or kind in _SCALARS:
        return kind
    if kind == "types.UID":
        return "string"
    home, _, name = kind.rpartition(".")
    return f"{_PACKAGES.get(home, home or package)}.{name}"


def extract(api: Path, apimachinery: Path, jobset: Path) -> Fields:
    source = Source(
        {
            "core": [api / "core/v1/types.go"],
            "batch": [api / "batch/v1/types.go"],
            "meta": [apimachinery / "pkg/apis/meta/v1/types.go"],
            "jobset": [jobset / "api/jobset/v1alpha2/jobset_types.go"],
        }
    )
    fields: Fields = {}
    waiting = [ROOT]
    while waiting:
        name = waiting.pop(0)
        if name not in fields:
            fields[name] = source.fields(name)
            waiting += [kind for code in fields[name].values() if "." in (kind := code[1:].lstrip("[]{}"))]
    return dict(sorted(fields.items()))
