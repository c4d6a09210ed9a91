"""What `doctor` looks at on this machine: whether a local cluster can run here, and how well."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from trainwright.cli.clusters.directory import ClusterDirectory
from trainwright.cli.doctor.finding import Finding, fail, ok, warn

GIB = 2**30
LEAST_PYTHON = (3, 11)
LITTLE_DISK, NO_DISK = 5 * GIB, GIB // 2
LITTLE_MEMORY = 2 * GIB
FEW_FILES = 1024
LITTLE_SHARED_MEMORY = 64 * 2**20
FRAMEWORKS = ("torch", "jax", "xgboost", "deepspeed", "transformers")


def look(cluster: ClusterDirectory) -> Iterator[Finding]:
    """All findings about this machine."""
    yield _python()
    yield _system()
    if sys.platform != "linux":
        return
    yield _isolation()
    yield _limits()
    yield _state(cluster)
    yield _disk(cluster)
    yield _memory()
    yield _shared_memory()
    yield _open_files()
    yield _ports()
    yield _gpus()
    yield _frameworks()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < LEAST_PYTHON:
        return fail("Python", version, "install Python 3.11 or later")
    return ok("Python", f"{version} at {sys.executable}")


def _system() -> Finding:
    if sys.platform == "linux":
        cpus = len(os.sched_getaffinity(0))
        return ok("system", f"Linux {os.uname().release}, {cpus} CPU{'s' * (cpus != 1)}")
    return fail(
        "system", f"{sys.platform}: no local cluster here", "train on Linux, or on another cluster with --context NAME"
    )


def _isolation() -> Finding:
    from trainwright.embedded.node.supervision.tiers import probe

    tier = probe(networks=True)
    if tier.name != "T0":
        networks = "up --network isolated gives each a network too" if tier.has_networks else tier.reason
        return ok("isolation", f"pods have host names, addresses and volumes of their own (T1); {networks}")
    return warn(
        "isolation",
        f"{tier.reason} (T0): no volumes at their paths",
        "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 and"
        " kernel.apparmor_restrict_unprivileged_userns=0; in a container: --security-opt seccomp=unconfined",
    )


def _limits() -> Finding:
    from trainwright.embedded.node.supervision.cgroups import CONTROLLERS, probe

    found = probe()
    missing = [name for name in CONTROLLERS if name not in found]
    if not missing:
        return ok("limits", f"the kernel keeps the pods' limits: {found.reason}")
    watched = {"cpu": "CPU limits are whole CPUs", "memory": "memory limits are watched"}
    return ok("limits", f"{' and '.join(watched[name] for name in missing)}: {found.reason}")


def _state(cluster: ClusterDirectory) -> Finding:
    place = _existing(cluster.path)
    if not os.access(place, os.W_OK | os.X_OK):
        return fail("state", f"{cluster.path} cannot be written", "choose another directory with --dir")
    pid = cluster.running_pid()
    return ok(
        "state", f"{cluster.path}; {'no local cluster runs' if pid is None else f'a local cluster runs (pid {pid})'}"
    )


def _existing(path: Path) -> Path:
    """The nearest directory above that is there."""
    return next(parent for parent in (path, *path.parents) if parent.exists())


def _disk(cluster: ClusterDirectory) -> Finding:
    place = _existing(cluster.path)
    free = shutil.disk_usage(place).free
    text = f"{free / GIB:.1f} GiB free at {place}"
    mend = "delete old runs: trainwright runs delete --finished; or choose another directory with --dir"
    if free < NO_DISK:
        return fail("disk", text, mend)
    return warn("disk", text, mend) if free < LITTLE_DISK else ok("disk", text)


def _memory() -> Finding:
    amounts = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        amounts[name] = int(value.split()[0]) * 1024
    free, total = amounts.get("MemAvailable", 0), amounts["MemTotal"]
    text = f"{free / GIB:.1f} of {total / GIB:.1f} GiB free"
    if free < LITTLE_MEMORY:
        return warn("memory", text, "end other programs, or train with smaller batches and fewer processes")
    return ok("memory", text)


def _shared_memory() -> Finding:
    try:
        size = shutil.disk_usage("/dev/shm").total  # noqa: S108 - what PyTorch's DataLoader uses
    except OSError:
        return warn("shared memory", "there is no /dev/shm", "mount it: PyTorch's DataLoader and NCCL need it")
    text = f"{size / GIB:.2f} GiB at /dev/shm"
    if size <= LITTLE_SHARED_MEMORY:
        return warn("shared memory", text, "in a container: start it with --shm-size=2g, or with --ipc=host")
    return ok("shared memory", text)


def _open_files() -> Finding:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FEW_FILES:
        return warn("open files", f"at most {soft} for each process", f"ulimit -n {min(hard, 65536)}")
    return ok("open files", f"up to {soft} for each process")


def _ports() -> Finding:
    from trainwright.embedded.node.network.addresses import free_port

    try:
        port = free_port(set())
    except OSError as error:
        return fail("ports", str(error), "end programs that listen on so many ports: ss -ltnp")
    return ok("ports", f"loopback can be listened on, such as port {port}")


def _gpus() -> Finding:
    devices = sorted(Path("/proc/driver/nvidia/gpus").glob("*")) if Path("/proc/driver/nvidia/gpus").exists() else []
    program = shutil.which("nvidia-smi")
    if program is None:
        if devices:
            return warn(
                "GPUs", f"{len(devices)} in the kernel, but no nvidia-smi", "install the driver's user programs"
            )
        from trainwright.embedded.node.resources.allotment import models
        from trainwright.embedded.node.resources.devices import find

        others = [f"{', '.join(models(found))} ({name})" for name, found in find(os.environ).items()]
        return ok("GPUs", "; ".join(others) or "none; training runs on the CPU")
    listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=20, check=False)
    names = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    if listed.returncode != 0:
        said = (listed.stderr or listed.stdout).strip().splitlines() or ["no word"]
        return warn("GPUs", f"nvidia-smi fails: {said[0]}", "reboot after an update of the driver, or install it again")
    return ok("GPUs", f"{len(names)}: {'; '.join(name.partition(' (UUID')[0] for name in names)}" if names else "none")


def _frameworks() -> Finding:
    from trainwright.cli.jobs.runnable import installed
    from trainwright.cli.launch.interpreter import interpreter

    found = [name for name in FRAMEWORKS if installed(name)]
    python = interpreter(None, os.environ)
    if found:
        return ok("frameworks", f"{', '.join(found)}; scripts run with {python}")
    return warn(
        "frameworks", f"{python} has none of {', '.join(FRAMEWORKS)}", "activate your virtualenv, or: pip install torch"
    )
