"""Write `types.json`, the wire table of the built-in kinds, from the Go sources of the Kubernetes API.

In: the directories of the modules k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver. Out: for each
struct its JSON fields with type, whether an empty value is left out, whether it is a pointer, and its protobuf number.
It takes facts only, no texts. Run it as `python -m trainwright.embedded.apiserver.wire.generate API APIMACHINERY
APIEXTENSIONS`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

PACKAGES = (
    *("admissionregistration/v1", "apps/v1", "authentication/v1", "authorization/v1", "autoscaling/v1"),
    *("autoscaling/v2", "batch/v1", "coordination/v1", "core/v1", "events/v1", "node/v1", "policy/v1", "rbac/v1"),
    *("scheduling/v1", "scheduling/v1alpha2", "storage/v1"),
)
ROOTS = {
    "admissionregistration/v1": ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"],
    "apps/v1": ["ControllerRevision"],
    "authentication/v1": ["TokenReview", "TokenRequest", "SelfSubjectReview"],
    "authorization/v1": [
        "SubjectAccessReview",
        "SelfSubjectAccessReview",
        "LocalSubjectAccessReview",
        "SelfSubjectRulesReview",
    ],
    "autoscaling/v1": ["Scale"],
    "autoscaling/v2": ["HorizontalPodAutoscaler"],
    "batch/v1": ["Job"],
    "coordination/v1": ["Lease"],
    "core/v1": [
        *(
            "Binding",
            "ConfigMap",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
        ),
        *("Pod", "Secret", "Service", "ServiceAccount"),
    ],
    "events/v1": ["Event"],
    "node/v1": ["RuntimeClass"],
    "policy/v1": ["Eviction"],
    "rbac/v1": ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
    "scheduling/v1": ["PriorityClass"],
    "scheduling/v1alpha2": ["PodGroup"],
    "storage/v1": ["StorageClass"],
    "meta/v1": ["DeleteOptions"],
    "apiextensions/v1": ["CustomResourceDefinition"],
}
SCALARS = {
    "string": "string",
    "bool": "bool",
    "int": "int",
    "int32": "int32",
    "int64": "int64",
    "float64": "float",
    "byte": "byte",
    "uint32": "int64",
}
SPECIAL = {
    "meta/v1.Time": "time",
    "meta/v1.MicroTime": "microtime",
    "meta/v1.Duration": "duration",
    "meta/v1.FieldsV1": "json",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intstr",
    "runtime.RawExtension": "raw",
    "apiextensions/v1.JSON": "json",
    "apiextensions/v1.JSONSchemaProps": "json",
    "types.UID": "string",
    "types.NodeName": "string",
}
STRUCT = re.compile(r"^type (\w+) +struct ?\{")
ALIAS = re.compile(r"^type (\w+) =? ?([\w\[\]\.\*]+)")
FIELD = re.compile(r"^\s+(?:(\w+)\s+)?([\w\[\]\.\*]+)\s+`([^`]*)`")
TAG = re.compile(r'(\w+):"([^"]*)"')


class Sources:
    """All structs and named types of the packages, by `package.Name`."""

    def __init__(self, api: Path, machinery: Path, extensions: Path) -> None:
        self.structs: dict[str, list[tuple[str, str, dict[str, str]]]] = {}
        self.aliases: dict[str, str] = {}
        for package in PACKAGES:
            self.read(package, api / package)
        self.read("meta/v1", machinery / "pkg/apis/meta/v1")
        self.read("apiextensions/v1", extensions / "pkg/apis/apiextensions/v1")

    def read(self, package: str, folder: Path) -> None:
        for file in sorted(folder.glob("types*.go")):
            struct = None
            for line in file.read_text().splitlines():
                if found := STRUCT.match(line):
                    name = f"{package}.{found[1]}"
                    struct = None if line.endswith("{}") else name
                    self.structs[name] = []
                elif line == "}":
                    struct = None
                elif struct and not line.strip().startswith("//") and (found := FIELD.match(line)):
                    self.structs[struct].append((found[1] or "", found[2], dict(TAG.findall(found[3]))))
                elif struct is None and (found := ALIAS.match(line)):
                    self.aliases[f"{package}.{found[1]}"] = found[2]

    def resolve(self, package: str, go: str) -> tuple[str, bool]:
        """A Go type as the table spells it, and whether it is a pointer."""
        if go.startswith("*"):
            return self.resolve(package, go[1:])[0], True
        if go == "[]byte":
            return "bytes", False
        if go.startswith("[]"):
            return "[]" + self.resolve(package, go[2:])[0], False
        if go.startswith("map["):
            return "{}" + self.resolve(package, go[go.index("]") + 1 :])[0], False
        if go in SCALARS:
            return SCALARS[go], False
        name = self.qualify(package, go)
        if name in SPECIAL:
            return SPECIAL[name], False
        if name in self.structs:
            return name, False
        if name in self.aliases:
            target = self.resolve(name.rpartition(".")[0], self.aliases[name])[0]
            # A named slice is a message of its own in protobuf, with the items as field 1.
            return ("<>" + target if target.startswith("[]") else target), False
        raise SystemExit(f"unknown type {go} in {package}")

    def qualify(self, package: str, go: str) -> str:
        prefix, _, name = go.rpartition(".")
        if not prefix:
            return f"{package}.{name}"
        known = {"metav1": "meta/v1", "v1": "core/v1", "corev1": "core/v1", "apiv1": "core/v1"}
        home = known.get(prefix, prefix)
        if prefix == "v1" and package in ("core/v1", "apiextensions/v1"):
            home = "meta/v1"
        return f"{home}.{name}"

    def table(self) -> dict[str, dict[str, list[object]]]:
        table: dict[str, dict[str, list[object]]] = {}
        todo = [f"{package}.{name}" for package, names in ROOTS.items() for name in names]
        while todo:
            name = todo.pop()
            if name in table:
                continue
            fields = table[name] = {}
            package = name.rpartition(".")[0]
            for _, go, tags in self.structs[name]:
                if "json" not in tags or go.endswith("TypeMeta"):
                    continue
                json_name, *options = tags["json"].split(",")
                if json_name == "-":
                    continue
                target, pointer = self.resolve(package, go)
                number = int(tags["protobuf"].split(",")[1]) if "protobuf" in tags else 0
                flags = "*" * pointer + "o" * ("omitempty" in options) + "z" * ("omitzero" in options)
                flags += "i" * ("inline" in options)
                entry: list[object] = [target, flags, number]
                bare = go.lstrip("*[]")
                if target.endswith("string") and bare not in SCALARS and not bare.startswith("map"):
                    # Messages name the Go type: `types.UID`, `v1.ServiceType`.
                    entry.append(
                        bare.replace("metav1.", "v1.") if "." in bare else f"{package.rpartition('/')[2]}.{bare}"
                    )
                fields[json_name or f"<{target}>"] = entry
                struct = re.sub(r"^(<>|\[\]|\{\})+", "", target)
                if struct in self.structs:
                    todo.append(struct)
        return dict(sorted(table.items()))


def main(arguments: list[str]) -> None:
    table = Sources(*(Path(argument) for argument in arguments)).table()
    lines = [f"{json.dumps(name)}:{json.dumps(fields, separators=(',', ':'))}" for name, fields in table.items()]
    Path(__file__).with_name("types.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
