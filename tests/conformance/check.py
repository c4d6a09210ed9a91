#!/usr/bin/env python3
"""Compare what Trainwright renders with what Kubeflow Trainer applied for the same input.

    check.py [--command 'trainwright render -n golden --feature-gates TrainJobStatus={gate} -f {input}'] [--quiet]
    CASES...

A case is a folder with `input.yaml` (runtimes and one TrainJob) and `expected.yaml` (the server-side-apply bodies
that Kubeflow Trainer v2.3 sent for it, random data masked), or a `.jsonl` file with one case a line: `input`
(documents) and `applied` (objects) or `error`. The command reads the input file and prints the child objects as a
YAML stream; `{gate}` is true for the cases that were recorded with progress reporting on (they hold a file
`features`).

Two objects are equal if they are equal without the parts that carry no meaning: empty maps and lists, the spelling of
quantities, the order of volumes and mounts, owner UIDs, generated key material, the text of Flux's shell scripts, our
own labels and annotations (`trainer.kubeflow.org/runtime-revision` and every name that begins with `trainwright.`), the
variables that only Open MPI 5 reads, and the JobSet's `ttlSecondsAfterFinished`, which the operator keeps itself.
Runtime snapshots are left out: we keep a runtime as a ControllerRevision. docs/compatibility.md gives the reasons. The
order of env entries counts, because a later entry may refer to an earlier one.
"""

from __future__ import annotations

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
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import yaml

Json = dict[str, Any]
Render = Callable[[list[Json], str], tuple[list[Json] | None, str]]
"""Takes documents and the value of the feature gate; returns the objects, or None and why there are none."""

SUFFIX: dict[str, int | Decimal] = {
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
OUR_LABELS = ("app.kubernetes.io/managed-by", "trainer.kubeflow.org/trainjob-name")
OUR_ANNOTATIONS = ("trainer.kubeflow.org/runtime-revision", "trainwright.")


class Case(NamedTuple):
    """One recorded input and what the reference made of it: objects, or the message of a refusal."""

    name: str
    documents: list[Json]
    expected: list[Json] | None
    error: str | None
    gate: str


def quantity(value: Any) -> Any:
    """One spelling for each amount; anything that is no quantity stays as it is."""
    match = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)", str(value))
    if not match or match[2] not in SUFFIX:
        return value
    return format((Decimal(match[1]) * SUFFIX[match[2]]).normalize(), "f")


def normal(node: Any, key: str = "") -> Any:
    """The value without empty parts, with quantities and unordered lists in one form."""
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


def comparable(obj: Json) -> Json:
    """A copy of the object without what differs by decision or by chance."""
    obj = json.loads(json.dumps(obj))
    metadata = obj["metadata"]
    for ref in metadata.get("ownerReferences", []):
        ref["uid"] = "<uid>"
    metadata.pop("namespace", None)
    for label in OUR_LABELS:
        metadata.get("labels", {}).pop(label, None)
    _drop_our_annotations(obj)
    if obj["kind"] == "JobSet":
        obj["spec"].pop("ttlSecondsAfterFinished", None)
        for job in obj["spec"].get("replicatedJobs", []):
            _drop_our_annotations(job["template"])
            _drop_our_annotations(job["template"]["spec"].get("template", {}))
    if obj["kind"] == "Secret":
        obj["data"] = dict.fromkeys(obj.get("data") or obj.pop("stringData", {}), "<generated>")
        obj.pop("stringData", None)
    if obj["kind"] == "ConfigMap" and metadata["name"].endswith("-flux-entrypoint"):
        obj["data"] = dict.fromkeys(obj["data"], "<script>")
    if obj["kind"] == "ConfigMap" and "ca.crt" in obj.get("data", {}):
        obj["data"]["ca.crt"] = "<generated>"
    plain: Json = normal(obj)
    return plain


def _drop_our_annotations(part: Json) -> None:
    annotations = part.get("metadata", {}).get("annotations", {})
    for name in [name for name in annotations if name.startswith(OUR_ANNOTATIONS)]:
        del annotations[name]


def is_snapshot(obj: Json) -> bool:
    """Whether the object keeps a runtime as it was; each side has its own kind for that."""
    return bool(obj["kind"] == "ControllerRevision" or obj["metadata"]["name"].endswith("-runtime-snapshot"))


def keyed(objects: Iterable[Json]) -> dict[str, Json]:
    """Comparable objects by kind and name, without runtime snapshots."""
    return {f"{o['kind']}/{o['metadata']['name']}": comparable(o) for o in objects if o and not is_snapshot(o)}


def rendering(command: str) -> Render:
    """Render with a command that takes a file of YAML documents and prints objects."""

    def render(documents: list[Json], gate: str) -> tuple[list[Json] | None, str]:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump_all(documents, file)
            file.flush()
            argv = [part.replace("{input}", file.name).replace("{gate}", gate) for part in shlex.split(command)]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            return None, done.stderr.strip()
        return [o for o in yaml.safe_load_all(done.stdout) if o], ""

    return render


def env_order_is_chance(documents: Iterable[Json]) -> bool:
    """Whether the reference may order env either way: it runs its plugins for XGBoost and Flux in random order."""
    policies = [(d.get("spec", {}).get("mlPolicy") or {}) for d in documents]
    return any("xgboost" in policy or "flux" in policy for policy in policies)


def sort_env(node: Any) -> Any:
    """The value with every env list sorted."""
    if isinstance(node, dict):
        return {k: sorted(v, key=str) if k == "env" else sort_env(v) for k, v in node.items()}
    return [sort_env(v) for v in node] if isinstance(node, list) else node


def judge(case: Case, render: Render) -> list[str]:
    """Render the case and list the differences, as lines to print; an empty list means equal."""
    try:
        got, message = render(case.documents, case.gate)
    except (subprocess.TimeoutExpired, yaml.YAMLError, OSError) as problem:
        return [f"could not render: {problem}"]
    if case.error is not None:
        return [] if got is None else [f"rendered, but the API refuses it: {case.error}"]
    if got is None:
        return [f"refused, but the API takes it: {message[-400:]}"]
    want, have = keyed(case.expected or []), keyed(got)
    if env_order_is_chance(case.documents):
        want, have = sort_env(want), sort_env(have)
    differences: list[str] = []
    for key in sorted(want.keys() | have.keys()):
        if want.get(key) != have.get(key):
            a, b = (yaml.safe_dump(side.get(key), sort_keys=True).splitlines() for side in (want, have))
            lines = difflib.unified_diff(a, b, "expected", "rendered", n=2, lineterm="")
            differences += [f"  {key}", *(f"    {line}" for line in lines)]
    return differences


def load(paths: Iterable[str | pathlib.Path]) -> Iterator[Case]:
    """The cases of folders and `.jsonl` files, in a fixed order."""
    for path in map(pathlib.Path, paths):
        if path.suffix == ".jsonl":
            for line in path.read_text().splitlines():
                row = json.loads(line)
                error = row.get("error")
                yield Case(str(row["seed"]), row["input"], row.get("applied"), error and error["message"], "false")
            continue
        for folder in sorted(p.parent for p in path.rglob("input.yaml")):
            documents = [d for d in yaml.safe_load_all((folder / "input.yaml").read_text()) if d]
            if (folder / "expected.yaml").exists():
                objects = list(yaml.safe_load_all((folder / "expected.yaml").read_text()))
                yield Case(folder.name, documents, objects, None, str((folder / "features").exists()).lower())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument(
        "--command", default="trainwright render -n golden --feature-gates TrainJobStatus={gate} -f {input}"
    )
    parser.add_argument("--quiet", action="store_true", help="only the total")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    render = rendering(args.command)
    cases = list(load(args.cases))
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for case, problems in zip(cases, pool.map(lambda case: judge(case, render), cases), strict=True):
            passed += not problems
            if problems and not args.quiet:
                print(f"DIFFERS {case.name}", *problems[:60], sep="\n")
    print(f"{passed} of {len(cases)} equal")
    return 0 if cases and passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
