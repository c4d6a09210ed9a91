"""MPIJobs: v1 launches by `kubectl exec`, a TrainJob by SSH.

In: a layout of the jobs `node` and `launcher`. Out: replicated jobs for a runtime with `mlPolicy.mpi`, whose plugin
writes the hostfile, the key and MPI's variables.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from trainwright.conversion.findings import Finding, Verdict
from trainwright.conversion.layout import LAUNCHER, NODE, Layout
from trainwright.conversion.policies import Gang, pod_restart_policy, restarts
from trainwright.conversion.templates import ANCESTOR_LABEL, pod_metadata
from trainwright.conversion.v1pods import launcher_trains
from trainwright.schema.jsonobject import Json

SSH_DIRECTORY = "/root/.ssh"
SSHD = ["/usr/sbin/sshd", "-De"]
WAITING = ("sleep", "tail", "sshd")
"""Programs that a worker runs to wait for the launcher."""
INTEL = ("I_MPI_",)
OVERRIDDEN = ("OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args")
"""Variables with which v1, or its users, choose the agent and the hostfile; the plugin sets its own."""


def policy(layout: Layout) -> Json:
    job = layout.job
    return {
        "numProcPerNode": job.spec.get("slotsPerWorker", 1),
        "mpiImplementation": "Intel" if _is_intel(layout) else "OpenMPI",
        "sshAuthMountPath": SSH_DIRECTORY,
        "runLauncherAsNode": launcher_trains(job),
    }


def num_nodes(layout: Layout) -> int:
    return layout.job.replicas["Worker"].count + (1 if launcher_trains(layout.job) else 0)


def replicated_jobs(layout: Layout, gang: Gang) -> list[Json]:
    return [_replicated_job(layout, name, gang) for name in (NODE, LAUNCHER)]


def _replicated_job(layout: Layout, name: str, gang: Gang) -> Json:
    job = layout.job
    group = next(group for group in layout.groups if group.name == name)
    spec = copy.deepcopy(group.replica.pod_spec)
    spec["restartPolicy"] = pod_restart_policy(group.replica)
    if gang.scheduler and not spec.get("schedulerName"):
        spec["schedulerName"] = gang.scheduler
    if gang.priority_class and not spec.get("priorityClassName"):
        spec["priorityClassName"] = gang.priority_class
    main = job.main_container(spec)
    main["name"] = NODE
    if name == NODE and not _waits_by_sshd(main):
        main["command"], main["args"] = SSHD[:1], SSHD[1:]
    if name == LAUNCHER:
        given = [each for each in main.get("env") or () if each.get("name") not in OVERRIDDEN]
        if not launcher_trains(job):
            hidden = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
            given = [each for each in given if each.get("name") not in hidden]
            given += [{"name": each, "value": ""} for each in hidden]
        if given:
            main["env"] = given
    body: Json = {
        "parallelism": group.pods,
        "completions": group.pods,
        "completionMode": "Indexed",
        **restarts(job, group),
        "template": {"metadata": pod_metadata(layout, group), "spec": spec},
    }
    template: Json = {"spec": body}
    entry: Json = {"name": name, "replicas": 1, "template": template}
    if name == LAUNCHER:
        template["metadata"] = {"labels": {ANCESTOR_LABEL: "trainer"}}
        entry["dependsOn"] = [{"name": NODE, "status": "Ready"}]
    return entry


def findings(layout: Layout) -> Iterator[Finding]:
    job = layout.job
    yield Finding(
        "launch",
        Verdict.SAME,
        f"by SSH in place of kubectl exec: the image needs sshd, and an ssh client that asks for no host keys; the key "
        f"is at {SSH_DIRECTORY}",
    )
    main = job.main_container(job.replicas["Worker"].pod_spec)
    words = [*(main.get("command") or ()), *(main.get("args") or ())]
    if words and not any(name in str(word) for word in words for name in WAITING):
        reason = "the workers' command is replaced by sshd; v1 runs it beside the ranks that the launcher starts"
        yield Finding("worker command", Verdict.DIFFERS, reason)


def _waits_by_sshd(container: Json) -> bool:
    return any("sshd" in str(word) for word in [*(container.get("command") or ()), *(container.get("args") or ())])


def _is_intel(layout: Layout) -> bool:
    """Whether the launcher speaks to Intel MPI: by its variables, or by its own mpiexec."""
    main = layout.job.main_container(layout.job.replicas["Launcher"].pod_spec)
    names = [str(each.get("name")) for each in main.get("env") or ()]
    words = [str(word) for word in [*(main.get("command") or ()), *(main.get("args") or ())]]
    return any(name.startswith(INTEL) for name in names) or any("mpiexec.hydra" in word for word in words)
