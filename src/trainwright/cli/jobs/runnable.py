"""Whether a runtime can run on this machine, and if not, why: for `get runtimes` and `doctor`.

In: a runtime and what the local node can do. Out: `yes`, or `no: ` and the reason. The node's own rules decide about
pods (`embedded.node.podspec.support`); a framework must be installed for the Python that pods run with.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from trainwright.cli.jobs.tables import FRAMEWORK, pod_templates
from trainwright.embedded.node.podspec.support import refusals
from trainwright.embedded.node.supervision.tiers import T0_ISOLATION, Tier
from trainwright.schema.jsonobject import Json

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAINER = "trainer"
PACKAGES = {
    "torch": "torch",
    "torchtune": "torchtune",
    "jax": "jax",
    "xgboost": "xgboost",
    "deepspeed": "deepspeed",
    "mlx": "mlx",
    "tensorflow": "tensorflow",
}
"""The Python package of each framework that a shipped runtime names."""
COMMAND_OF_JOB = ["true"]
"""Stands for the command that the TrainJob brings."""


def verdicts(runtimes: list[Json], node: Json | None) -> dict[str, str]:
    """The verdict on each runtime of a local cluster, by name."""
    tier = tier_of(node)
    return {
        runtime["metadata"]["name"]: f"no: {reasons[0]}" if (reasons := list(why_not(runtime, tier))) else "yes"
        for runtime in runtimes
    }


def why_not(runtime: Json, tier: Tier, is_installed: Callable[[str], bool] | None = None) -> Iterator[str]:
    """Every reason for which a TrainJob with this runtime cannot run here."""
    for job, labels, pod in pod_templates(runtime):
        trains = labels.get(ANCESTOR) == TRAINER
        containers = [
            {**container, "command": container.get("command") or COMMAND_OF_JOB} if trains else container
            for container in pod.get("containers") or ()
        ]
        for reason in refusals({"metadata": {}, "spec": {**pod, "containers": containers}}, tier):
            yield f"{job}: {reason.removeprefix(f'container {job}: ')}"
        for container in containers:
            program = (container.get("command") or COMMAND_OF_JOB)[0]
            if not _is_program(program):
                yield f"{job}: the program {program} is not on this machine"
    if ((runtime.get("spec") or {}).get("mlPolicy") or {}).get("mpi") is not None and not _is_program("mpirun"):
        yield "mpirun is not on this machine"
    framework = (runtime["metadata"].get("labels") or {}).get(FRAMEWORK) or ""
    package = PACKAGES.get(framework)
    if package and not (is_installed or installed)(package):
        yield f"the Python package {package} is not installed here"


def _is_program(word: str) -> bool:
    """Whether a command can be found. The node has an ssh and an sshd of its own."""
    return "$" in word or Path(word).name in ("ssh", "sshd") or shutil.which(word) is not None


def tier_of(node: Json | None) -> Tier:
    """The tier that the node says it has; without a node, the best one."""
    for item in ((node or {}).get("status") or {}).get("conditions") or ():
        if item["type"] == "NamespaceIsolation" and item["status"] == "False":
            return Tier("T0", T0_ISOLATION, item.get("message") or "namespaces are not allowed here")
    return Tier("T1", {"user": True, "mount": True, "pid": True}, "", other_users=True)


def installed(package: str) -> bool:
    """Whether a Python that pods may run with has a package: ours, or that of the active environment."""
    from importlib.util import find_spec

    from trainwright.cli.launch.interpreter import interpreter

    if find_spec(package) is not None:
        return True
    prefix = Path(interpreter(None, os.environ)).parent.parent
    return any(prefix.glob(f"lib/python3*/site-packages/{package}"))
