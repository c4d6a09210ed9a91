"""Compiles JobSet's own controller specs from its Go module, with our entry, and runs them against a program of ours.

In: the pinned module of `tests/kube/binaries/jobset`, `suite_test.go` beside this file. Out: a test program in the
cache of built programs, named by what decides it, and one `Result` for each spec. Nothing of them is in our tree.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kube.binaries import build

HERE = Path(__file__).resolve().parent
MODULE = "sigs.k8s.io/jobset"
SUITE = "test/integration/controller"
COPIED = ("go.mod", "go.sum", "api", "client-go", "pkg", "test", "config")
PROGRAM = [sys.executable, "-m", "trainwright.embedded.workloads", "--only", "jobset"]
SECONDS = 900


@dataclass(frozen=True)
class Result:
    name: str
    state: str
    seconds: float
    failure: str


def compiled() -> Path:
    """The specs as a program. Go needs the dependencies of JobSet's tests once: one to three minutes."""
    directory = build.cache_directory("jobset")
    digest = hashlib.sha256((HERE / "suite_test.go").read_bytes()).hexdigest()[:12]
    target = directory / f"specs-{digest}.test"
    if target.is_file():
        return target
    with build.only_one(directory):
        if not target.is_file():
            build.say("compiling JobSet's controller specs (once)")
            source = sources(directory)
            shutil.copyfile(HERE / "suite_test.go", source / SUITE / "suite_test.go")
            partial = directory / ".specs.partial"
            command = ["nice", "-n", "10", "go", "test", "-c", "-mod=readonly", "-o", str(partial), f"./{SUITE}"]
            environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-buildvcs=false"}
            subprocess.run(command, cwd=source, env=environment, check=True)
            partial.rename(target)
    return target


def sources(directory: Path) -> Path:
    """A copy of the module: Go lets nobody replace a file inside its module cache."""
    target = directory / "specs-source"
    if not target.is_dir():
        build.go("jobset", "mod", "download", MODULE)
        module = Path(build.go("jobset", "list", "-m", "-f", "{{.Dir}}", MODULE))
        partial = directory / ".specs-source.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for item in COPIED:
            if (module / item).is_dir():
                shutil.copytree(module / item, partial / item, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(module / item, partial / item)
        partial.rename(target)
    return target


def assets(directory: Path) -> Path:
    """The directory in which envtest looks for a control plane."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("etcd", "kube-apiserver", "kubectl"):
        if not (directory / name).exists():
            (directory / name).symlink_to(build.program(name))
    return directory


def run(directory: Path, shards: int) -> list[Result]:
    """All specs, in several processes at once: they wait more than they work, each on an API server of its own."""
    compiled()
    names = [result.name for result in _run(directory / "list", dry=True)]
    groups = [names[number::shards] for number in range(shards)]
    with ThreadPoolExecutor(shards) as pool:
        ran = pool.map(lambda pair: _run(directory / f"shard-{pair[0]}", only=pair[1]), enumerate(groups))
        return [result for results in ran for result in results]


def _run(directory: Path, *, only: list[str] | None = None, dry: bool = False) -> list[Result]:
    directory.mkdir(parents=True)
    manifests = build.manifests("jobset-manifests") / "config/components"
    report = directory / "report.json"
    command = [str(compiled()), f"--ginkgo.json-report={report}", "--ginkgo.no-color"]
    if dry:
        command.append("--ginkgo.dry-run")
    if only is not None:
        # RE2 has no limit that 65 names would meet.
        command.append(f"--ginkgo.focus=^.*({'|'.join(re.escape(name) for name in only)})$")
    environment = {
        **os.environ,
        "KUBEBUILDER_ASSETS": str(assets(directory / "assets")),
        "TRAINWRIGHT_CRDS": str(manifests / "crd/bases"),
        "TRAINWRIGHT_CONTROLLER": "\n".join(PROGRAM),
        "TRAINWRIGHT_CONTROLLER_LOG": str(directory / "controller.log"),
    }
    with (directory / "output.log").open("w") as output:
        subprocess.run(
            command, cwd=directory, env=environment, stdout=output, stderr=output, check=False, timeout=SECONDS
        )
    assert report.is_file(), (directory / "output.log").read_text()[-4000:]
    return [_result(spec) for spec in json.loads(report.read_text())[0]["SpecReports"] if _is_judged(spec, dry=dry)]


def _is_judged(spec: dict[str, object], *, dry: bool) -> bool:
    if spec["LeafNodeType"] == "It":
        return dry or spec["State"] != "skipped"
    return spec["State"] != "passed"  # the suite could not be set up: none of its specs ran


def _result(spec: dict[str, object]) -> Result:
    containers = spec["ContainerHierarchyTexts"] or []
    assert isinstance(containers, list)
    name = " ".join([*containers, str(spec["LeafNodeText"])])
    failure = spec.get("Failure") or {}
    assert isinstance(failure, dict)
    return Result(name, str(spec["State"]), float(str(spec["RunTime"])) / 1e9, str(failure.get("Message", "")))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        for each in sorted(run(Path(scratch), shards=4), key=lambda result: result.state):
            print(f"{each.state:8} {each.seconds:6.1f} s  {each.name}  {each.failure[:300]}")
