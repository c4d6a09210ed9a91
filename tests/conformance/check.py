#!/usr/bin/env python3
"""Compare what Trainwright renders with what Kubeflow Trainer applied for the same input.

    check.py [--command 'trainwright render -n golden --feature-gates TrainJobStatus={gate} -f {input}'] [--quiet]
    CASES...

A case is a folder with `input.yaml` (runtimes and one TrainJob) and `expected.yaml` (the server-side-apply bodies
that Kubeflow Trainer v2.3 sent for it, random data masked), or a `.jsonl` file with one case a line: `input`
(documents) and `applied` (objects) or `error`. The command reads the input file and prints the child objects as a
YAML stream; `{gate}` is true for the cases that were recorded with progress reporting on (they hold a file
`features`).

Equal means equal after removing what carries no meaning: empty maps and lists, the spelling of quantities, the order
of volumes and mounts, owner UIDs, generated key material, the text of Flux's shell scripts, our own labels and
annotation of ownership, and the variables that only Open MPI 5 reads (deviation D9). The runtime snapshot is kept in
another way (deviation D25) and left out. The order of env entries is meaning (later ones may refer to earlier ones),
so it counts.
"""

import argparse
import concurrent.futures
import difflib
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from decimal import Decimal

import yaml

SUFFIX = {
    "": 1,
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}
UNORDERED = {"volumes": "name", "volumeMounts": "mountPath", "ports": "containerPort", "imagePullSecrets": "name"}


def quantity(value):
    match = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)", str(value))
    if not match or match[2] not in SUFFIX:
        return value
    return format((Decimal(match[1]) * SUFFIX[match[2]]).normalize(), "f")


def normal(node, key=""):
    if isinstance(node, dict):
        if node.get("name") == "KUBEFLOW_TRAINER_SERVER_URL":
            return {**node, "value": re.sub(r"^https://[^/]*", "https://<service>", node["value"])}
        if key in ("limits", "requests", "minResources"):
            return {k: quantity(v) for k, v in node.items()} or None
        out = {k: normal(v, k) for k, v in node.items()}
        return {k: v for k, v in out.items() if v not in (None, {}, [])}
    if isinstance(node, list):
        items = [normal(v) for v in node if not (key == "env" and v["name"].startswith(("PRTE_MCA_", "PMIX_MCA_")))]
        if key in UNORDERED:
            items.sort(key=lambda v: str(v.get(UNORDERED[key])))
        return items
    return node


def comparable(obj):
    obj = json.loads(json.dumps(obj))
    for ref in obj.get("metadata", {}).get("ownerReferences", []):
        ref["uid"] = "<uid>"
    obj["metadata"].pop("namespace", None)
    for label in ("app.kubernetes.io/managed-by", "trainer.kubeflow.org/trainjob-name"):
        obj["metadata"].get("labels", {}).pop(label, None)
    obj["metadata"].get("annotations", {}).pop("trainer.kubeflow.org/runtime-revision", None)
    if obj["kind"] == "Secret":
        obj["data"] = dict.fromkeys(obj.get("data") or obj.pop("stringData", {}), "<generated>")
        obj.pop("stringData", None)
    if obj["kind"] == "ConfigMap" and obj["metadata"]["name"].endswith("-flux-entrypoint"):
        obj["data"] = dict.fromkeys(obj["data"], "<script>")
    if obj["kind"] == "ConfigMap" and "ca.crt" in obj.get("data", {}):
        obj["data"]["ca.crt"] = "<generated>"
    return normal(obj)


def is_snapshot(obj):
    return obj["kind"] == "ControllerRevision" or obj["metadata"]["name"].endswith("-runtime-snapshot")


def keyed(objects):
    return {f"{o['kind']}/{o['metadata']['name']}": comparable(o) for o in objects if o and not is_snapshot(o)}


def render(command, documents, gate):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump_all(documents, file)
        file.flush()
        argv = [part.replace("{input}", file.name).replace("{gate}", gate) for part in shlex.split(command)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return [o for o in yaml.safe_load_all(done.stdout) if o], ""


def env_order_is_chance(documents):
    """The reference runs two plugins over XGBoost and Flux jobs in an order that changes from start to start."""
    policies = [(d.get("spec", {}).get("mlPolicy") or {}) for d in documents]
    return any("xgboost" in policy or "flux" in policy for policy in policies)


def sort_env(node):
    if isinstance(node, dict):
        return {k: sorted(v, key=str) if k == "env" else sort_env(v) for k, v in node.items()}
    return [sort_env(v) for v in node] if isinstance(node, list) else node


def judge(case, command):
    name, documents, expected, error, gate = case
    try:
        got, message = render(command, documents, gate)
    except (subprocess.TimeoutExpired, yaml.YAMLError, OSError) as problem:
        return name, [f"could not render: {problem}"]
    if error is not None:
        return name, [] if got is None else [f"rendered, but the API refuses it: {error}"]
    if got is None:
        return name, [f"refused, but the API takes it: {message[-400:]}"]
    want, have, out = keyed(expected), keyed(got), []
    if env_order_is_chance(documents):
        want, have = sort_env(want), sort_env(have)
    for key in sorted(want.keys() | have.keys()):
        if want.get(key) != have.get(key):
            a, b = (yaml.safe_dump(x.get(key), sort_keys=True).splitlines() for x in (want, have))
            out += [f"  {key}"] + [
                f"    {line}" for line in difflib.unified_diff(a, b, "expected", "rendered", n=2, lineterm="")
            ]
    return name, out


def load(paths):
    for path in map(pathlib.Path, paths):
        if path.suffix == ".jsonl":
            for line in path.read_text().splitlines():
                row = json.loads(line)
                error = row.get("error")
                yield str(row["seed"]), row["input"], row.get("applied"), error and error["message"], "false"
            continue
        for folder in sorted(p.parent for p in path.rglob("input.yaml")):
            documents = [d for d in yaml.safe_load_all((folder / "input.yaml").read_text()) if d]
            if (folder / "expected.yaml").exists():
                objects = list(yaml.safe_load_all((folder / "expected.yaml").read_text()))
                yield folder.name, documents, objects, None, str((folder / "features").exists()).lower()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument(
        "--command", default="trainwright render -n golden --feature-gates TrainJobStatus={gate} -f {input}"
    )
    parser.add_argument("--quiet", action="store_true", help="only the total")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    passed = total = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, problems in pool.map(lambda case: judge(case, args.command), load(args.cases)):
            total += 1
            passed += not problems
            if problems and not args.quiet:
                print(f"DIFFERS {name}", *problems[:60], sep="\n")
    print(f"{passed} of {total} equal")
    return 0 if total and passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
