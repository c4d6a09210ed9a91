"""Build real control-plane programs for the tests, once, with Go, into a cache outside the tree.

In: the name of a program (or of several, or `all`). Out: one path per program on stdout; what happens and how long it
takes on stderr. Each directory beside this file is a Go module that only pins versions (`go.mod`, `go.sum`; and
`coscheduling` has a main of ten lines): their hash names the cache directory, so a changed pin builds anew and an
unchanged one never does. Only here does the project need Go.

A program found in `KUBEBUILDER_ASSETS` is used as it is. `TRAINWRIGHT_KUBE_CACHE` moves the cache.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Program:
    """A program of a pinned module; `stamp` are link-time variables, without which it calls itself v0.0.0."""

    module: str
    package: str
    stamp: dict[str, str] = field(default_factory=dict)


KUBERNETES_STAMP = {
    "k8s.io/component-base/version.gitVersion": "v1.36.4",
    "k8s.io/component-base/version.gitMajor": "1",
    "k8s.io/component-base/version.gitMinor": "36",
}

PROGRAMS: dict[str, Program] = {
    "kubectl": Program("kubernetes", "k8s.io/kubernetes/cmd/kubectl", KUBERNETES_STAMP),
    "kube-apiserver": Program("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", KUBERNETES_STAMP),
    "etcd": Program("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-controller-manager": Program("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", KUBERNETES_STAMP),
    "jobset": Program("jobset", "sigs.k8s.io/jobset"),
    "kwok": Program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    "kube-scheduler": Program("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", KUBERNETES_STAMP),
    "trainer": Program("trainer", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"),
    "trainer-2.2": Program("trainer-2.2", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"),
    "trainer-2.1": Program("trainer-2.1", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"),
    "training-operator": Program("training-operator", "github.com/kubeflow/training-operator/cmd/training-operator.v1"),
    "helm": Program("helm", "helm.sh/helm/v3/cmd/helm", {"helm.sh/helm/v3/internal/version.version": "v3.19.0"}),
    "kueue": Program("kueue", "sigs.k8s.io/kueue/cmd/kueue"),
    "kueue-0.19": Program("kueue-0.19", "sigs.k8s.io/kueue/cmd/kueue"),
    "volcano-scheduler": Program("volcano", "volcano.sh/volcano/cmd/scheduler"),
    "volcano-controller-manager": Program("volcano", "volcano.sh/volcano/cmd/controller-manager"),
    "coscheduling": Program("coscheduling", "."),
}


@dataclass(frozen=True)
class Manifests:
    """Files of a pinned module that a control plane needs too, copied out so that later runs need no Go."""

    module: str
    path: str
    files: tuple[str, ...]


_TRAINER = (
    "charts/kubeflow-trainer",
    "manifests/base/crds",
    "manifests/base/manager",
    "manifests/base/rbac",
    "manifests/base/runtimes",
    "manifests/base/webhook",
)

MANIFESTS: dict[str, Manifests] = {
    "jobset-manifests": Manifests(
        "jobset",
        "sigs.k8s.io/jobset",
        ("config/components/crd/bases", "config/components/webhook/manifests.yaml", "config/components/rbac"),
    ),
    "trainer-manifests": Manifests("trainer", "github.com/kubeflow/trainer/v2", _TRAINER),
    "trainer-2.2-manifests": Manifests("trainer-2.2", "github.com/kubeflow/trainer/v2", _TRAINER),
    "trainer-2.1-manifests": Manifests("trainer-2.1", "github.com/kubeflow/trainer/v2", _TRAINER),
    "training-operator-manifests": Manifests(
        "training-operator", "github.com/kubeflow/training-operator", ("manifests/base/crds",)
    ),
    "kueue-manifests": Manifests(
        "kueue",
        "sigs.k8s.io/kueue",
        ("config/components/crd/bases", "config/components/webhook/manifests.yaml", "config/components/rbac"),
    ),
    "kueue-0.19-manifests": Manifests(
        "kueue-0.19",
        "sigs.k8s.io/kueue",
        ("config/components/crd/bases", "config/components/webhook/manifests.yaml", "config/components/visibility"),
    ),
    "volcano-manifests": Manifests(
        "volcano", "volcano.sh/volcano", ("config/crd/volcano/bases", "config/crd/jobflow/bases")
    ),
    "cert-manager-manifests": Manifests("cert-manager", "github.com/cert-manager/cert-manager", ("deploy/crds",)),
    "coscheduling-manifests": Manifests("coscheduling", "sigs.k8s.io/scheduler-plugins", ("config/crd/bases",)),
}

# What `bench/compare.py` measures us against, and what `make test-cluster` meets: `all` leaves them out.
REFERENCE = ("trainer", "trainer-manifests")
AROUND = (
    "trainer-2.2",
    "trainer-2.2-manifests",
    "trainer-2.1",
    "trainer-2.1-manifests",
    "training-operator",
    "training-operator-manifests",
    "helm",
    "kueue",
    "kueue-manifests",
    "kueue-0.19",
    "kueue-0.19-manifests",
    "volcano-scheduler",
    "volcano-controller-manager",
    "volcano-manifests",
    "coscheduling",
    "coscheduling-manifests",
    "cert-manager-manifests",
)


def cache_root() -> Path:
    if override := os.environ.get("TRAINWRIGHT_KUBE_CACHE"):
        return Path(override).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "trainwright" / "kube"


def cache_directory(module: str) -> Path:
    """A build's directory, named by everything that decides the result: pins, packages, stamps, files and machine."""
    recipe = [platform.system(), platform.machine()]
    made: list[Program | Manifests] = [*PROGRAMS.values(), *MANIFESTS.values()]
    recipe += sorted(repr(each) for each in made if each.module == module)
    digest = hashlib.sha256("\n".join(recipe).encode())
    for pins in ("go.mod", "go.sum", "main.go"):  # main.go: a program of ours that only wires others together
        if (HERE / module / pins).exists():
            digest.update((HERE / module / pins).read_bytes())
    return cache_root() / f"{module}-{digest.hexdigest()[:12]}"


def say(text: str) -> None:
    print(f"== {text}", file=sys.stderr, flush=True)


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Hold a lock, so that of the test workers that start together only the first one builds."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def go(module: str, *arguments: str) -> str:
    """Run Go inside a pinned module, at low priority: a cold build takes minutes and must not stall the machine."""
    if shutil.which("go") is None:
        raise SystemExit(
            "Go is needed once to build the real control-plane programs and is not on PATH.\n"
            "Install Go 1.26 or newer, or point KUBEBUILDER_ASSETS at a directory that holds them."
        )
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(
        ["nice", "-n", "10", "go", *arguments],
        cwd=HERE / module,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"go {' '.join(arguments)} failed in {HERE / module} (exit code {done.returncode})")
    return done.stdout.strip()


def program(name: str) -> Path:
    """The path of the program, which is built now if it does not exist yet."""
    wanted = PROGRAMS[name]
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        given = Path(assets) / name
        if given.is_file():
            return given.resolve()
    directory = cache_directory(wanted.module)
    target = directory / name
    if target.is_file():
        return target
    with only_one(directory):
        if target.is_file():
            return target
        say(f"building {name} from {wanted.package} (once, into {directory}; a cold build takes one to four minutes)")
        started = time.monotonic()
        flags = " ".join(["-s", "-w", *(f"-X {key}={value}" for key, value in wanted.stamp.items())])
        unfinished = directory / f".{name}.partial"
        go(
            wanted.module,
            "build",
            "-buildvcs=false",
            "-trimpath",
            "-ldflags",
            flags,
            "-o",
            str(unfinished),
            wanted.package,
        )
        unfinished.rename(target)
        say(f"built {name} in {time.monotonic() - started:.0f} s, {target.stat().st_size / 1e6:.0f} MB")
    return target


def manifests(name: str) -> Path:
    """A directory with a module's own manifests (CRDs, webhook configurations), copied out of Go's module cache."""
    wanted = MANIFESTS[name]
    directory = cache_directory(wanted.module)
    target = directory / name
    if target.is_dir():
        return target
    with only_one(directory):
        if target.is_dir():
            return target
        go(wanted.module, "mod", "download", wanted.path)
        source = Path(go(wanted.module, "list", "-m", "-f", "{{.Dir}}", wanted.path))
        unfinished = directory / f".{name}.partial"
        shutil.rmtree(unfinished, ignore_errors=True)
        for item in wanted.files:
            copy = unfinished / item
            copy.parent.mkdir(parents=True, exist_ok=True)
            if (source / item).is_dir():
                shutil.copytree(source / item, copy, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(source / item, copy)
        unfinished.rename(target)
        say(f"copied the manifests of {wanted.path} to {target}")
    return target


def main() -> None:
    names = [*PROGRAMS, *MANIFESTS]
    parser = argparse.ArgumentParser(description="Build real control-plane programs and print their paths.")
    parser.add_argument("names", nargs="+", choices=[*names, "all"], metavar="NAME", help=", ".join([*names, "all"]))
    suite = [name for name in names if name not in (*REFERENCE, *AROUND)]
    asked = parser.parse_args().names
    for name in dict.fromkeys(name for each in asked for name in (suite if each == "all" else [each])):
        print(program(name) if name in PROGRAMS else manifests(name), flush=True)


if __name__ == "__main__":
    main()
