"""Compares the pods that v1 would create with those that the converted job gets.

In: a `Converted` and the objects that the pipeline renders for it. Out: a finding for each aspect, the worst verdict of
all pods. What training code means by a variable is compared, not its letters: an address that is now another name of
the same pod means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trainwright.conversion.conversion import Converted
from trainwright.conversion.findings import Finding, Verdict
from trainwright.conversion.pods import Pod, pods_of, resolve
from trainwright.conversion.v1job import MPI, PYTORCH, TENSORFLOW
from trainwright.conversion.v1pods import (
    CONFIG_VOLUME,
    DELIVERY,
    JOB_ROLE,
    KUBECTL_VOLUME,
    PREFIX,
    REPLICA_INDEX,
    REPLICA_TYPE,
    WAIT_FOR_MASTER,
    V1Pod,
    launcher_trains,
)
from trainwright.conversion.v1pods import pods_of as v1_pods_of
from trainwright.conversion.variables import TASK_INDEX, is_torchrun
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity

LAUNCH_VARIABLES = ("OMPI_MCA_plm_rsh_agent", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC")
PLUGIN_VOLUMES = ("mpi-ssh-auth", "mpi-hostfile")
TORCHRUN_SETS = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
MEETING_PORTS = ("MASTER_PORT", "PET_MASTER_PORT", "COORDINATOR_PORT")
EQUAL = (Verdict.EQUAL, "")
_RANK = [Verdict.EQUAL, Verdict.SAME, Verdict.DIFFERS]
Answer = tuple[Verdict, str]


def prove(converted: Converted, rendered: list[Json]) -> list[Finding]:
    """Every aspect of every pod, and the findings of the conversion itself."""
    jobset = next(item for item in rendered if item["kind"] == "JobSet")
    ours = {pod.place: pod for pod in pods_of(jobset)}
    theirs = v1_pods_of(converted.job)
    pairs = [(pod, ours.get(converted.layout.places[pod.type, pod.index])) for pod in theirs]
    findings = [_count(len(theirs), len(ours))]
    for aspect, compare in ASPECTS.items():
        answers = [compare(converted, v1, pod) for v1, pod in pairs if pod is not None]
        findings.append(_worst(aspect, answers))
    if converted.job.kind is MPI:
        findings.append(_hosts(converted, rendered))
    findings += [_gang(len(theirs), item) for item in rendered if item["kind"] == "PodGroup"]
    return _merged([*findings, *converted.findings])


def _count(theirs: int, ours: int) -> Finding:
    if theirs == ours:
        return Finding("pods", Verdict.EQUAL, f"{ours}")
    return Finding("pods", Verdict.DIFFERS, f"v1 makes {theirs}, the TrainJob {ours}")


def _gang(pods: int, group: Json) -> Finding:
    least = group["spec"]["minMember"]
    if least == pods:
        return Finding("gang", Verdict.EQUAL, f"all {pods} pods together")
    return Finding("gang", Verdict.DIFFERS, f"the PodGroup starts {least} of {pods} pods together")


def _worst(aspect: str, answers: list[Answer]) -> Finding:
    verdict, reason = max(answers, key=lambda answer: _RANK.index(answer[0]), default=EQUAL)
    return Finding(aspect, verdict, reason)


def _merged(findings: list[Finding]) -> list[Finding]:
    """One row for each aspect: a difference that the conversion explains keeps that explanation."""
    rows: dict[str, Finding] = {}
    for finding in findings:
        known = rows.get(finding.aspect)
        if known is None or _RANK.index(finding.verdict) > _RANK.index(known.verdict):
            rows[finding.aspect] = finding
        elif finding.reason and not known.reason:
            rows[finding.aspect] = known._replace(reason=finding.reason)
    return list(rows.values())


def _containers(converted: Converted, v1: V1Pod, pod: Pod) -> tuple[Json, Json]:
    """The main containers of both."""
    theirs = converted.job.main_container(v1.spec)
    position = v1.spec["containers"].index(theirs)
    return theirs, pod.spec["containers"][position]


def _image(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    theirs, ours = _containers(converted, v1, pod)
    return _equal(theirs.get("image"), ours.get("image"))


def _command(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    theirs, ours = _containers(converted, v1, pod)
    if converted.job.kind is MPI and v1.type == "Worker":
        return Verdict.SAME, "the workers wait for the launcher by sshd"
    same = [theirs.get(field) or [] for field in ("command", "args")] == [
        ours.get(field) or [] for field in ("command", "args")
    ]
    if same:
        return EQUAL
    if is_torchrun(ours) and not is_torchrun(theirs):
        return Verdict.SAME, "started by torchrun, as asked"
    return Verdict.DIFFERS, f"{v1.name}: {theirs.get('command')} {theirs.get('args')}"


def _resources(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    theirs, ours = _containers(converted, v1, pod)
    return _equal(_amounts(theirs.get("resources")), _amounts(ours.get("resources")))


def _volumes(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    theirs, ours = _containers(converted, v1, pod)
    own = {CONFIG_VOLUME, KUBECTL_VOLUME, *PLUGIN_VOLUMES}

    def kept(items: Any) -> list[Any]:
        return [_bare(item) for item in items or () if item.get("name") not in own]

    found = _equal(
        (kept(v1.spec.get("volumes")), kept(theirs.get("volumeMounts"))),
        (kept(pod.spec.get("volumes")), kept(ours.get("volumeMounts"))),
    )
    if found == EQUAL and converted.job.kind is MPI:
        return Verdict.SAME, "the user's are equal; hostfile and SSH key take the place of kubectl and its script"
    return found


def _own_variables(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    theirs, ours = _containers(converted, v1, pod)
    expected = {name: entry for name, entry in _env(theirs).items() if name not in v1.injected}
    found = {name: entry for name, entry in _env(ours).items() if name in expected}
    missing = sorted(set(expected) - set(found))
    if missing and converted.job.kind is MPI and all(name.startswith(("OMPI_MCA_", "I_MPI_")) for name in missing):
        return Verdict.SAME, f"{', '.join(missing)} is the MPI plugin's"
    return _equal(expected, found, f"{v1.name}: {', '.join(missing) or 'values'}")


def _v1_variables(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    """What v1 tells training code: world size, rank, the address of rank 0, its peers."""
    theirs, ours = _containers(converted, v1, pod)
    given, found = _env(theirs), _env(ours)
    torchrun = converted.job.kind is PYTORCH and is_torchrun(ours)
    reasons: list[str] = []
    for name in sorted(v1.injected):
        verdict, reason = _variable(converted, name, given[name], found.get(name), torchrun)
        if verdict is Verdict.DIFFERS:
            return verdict, f"{v1.name}: {reason}"
        if reason and reason not in reasons:
            reasons.append(reason)
    added = sorted(set(found) - set(given) - {TASK_INDEX})
    if added:
        reasons.append(f"added: {', '.join(added)}")
    return (Verdict.SAME, "; ".join(reasons)) if reasons else EQUAL


def _variable(converted: Converted, name: str, given: Json, found: Json | None, torchrun: bool) -> Answer:
    if found is not None and found == given:
        return EQUAL
    if name in LAUNCH_VARIABLES:
        return Verdict.SAME, "launched by SSH"
    if name.startswith("PET_") and not torchrun:
        return Verdict.SAME, "PET_* are read by torchrun alone, which this job does not use"
    if name in TORCHRUN_SETS and torchrun and found is None:
        return Verdict.SAME, f"torchrun sets {', '.join(TORCHRUN_SETS)} for its processes"
    if found is None:
        return Verdict.DIFFERS, f"{name} is missing"
    if name in MEETING_PORTS:
        return Verdict.SAME, f"the ranks meet at port {found.get('value')}"
    if _moved(converted, str(given.get("value"))) == found.get("value"):
        return Verdict.SAME, "addresses are the new names of the same pods"
    return Verdict.DIFFERS, f"{name} is {found.get('value')!r}, in v1 {given.get('value')!r}"


def _moved(converted: Converted, text: str) -> str:
    """The text with every host name of v1 replaced by that of the same pod after the conversion."""
    job, layout = converted.job, converted.layout
    pods = sorted(v1_pods_of(job), key=lambda pod: len(pod.name), reverse=True)
    for number, pod in enumerate(pods):
        if job.kind is TENSORFLOW:
            text = text.replace(f"{pod.name}.{job.namespace}.svc", f"\0{number}\0")
        text = text.replace(pod.name, f"\0{number}\0")
    for number, pod in enumerate(pods):
        text = text.replace(f"\0{number}\0", layout.host(pod.type, pod.index))
    return text


def _labels(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    user = {key: value for key, value in v1.labels.items() if not key.startswith(PREFIX)}
    if wrong := [key for key, value in user.items() if pod.labels.get(key) != value]:
        return Verdict.DIFFERS, f"{v1.name}: {', '.join(wrong)}"
    lost = {key for key, value in v1.labels.items() if pod.labels.get(key) != value}
    by_role = lost & {REPLICA_TYPE, JOB_ROLE, REPLICA_INDEX}
    if lost - by_role:
        return Verdict.DIFFERS, f"{v1.name}: {', '.join(sorted(lost - by_role))}"
    if by_role:
        names = ", ".join(key.removeprefix(PREFIX) for key in sorted(by_role))
        return Verdict.SAME, f"in place of {names}: JobSet's replicatedjob-name and job-global-index, completion index"
    return EQUAL


def _annotations(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    wrong = [key for key, value in v1.annotations.items() if pod.annotations.get(key) != value]
    return (Verdict.DIFFERS, f"{v1.name}: {', '.join(wrong)}") if wrong else EQUAL


def _others(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    """Further containers, and init containers of the user."""
    main, ours = _containers(converted, v1, pod)
    ignore = ("env",)
    theirs = [_bare(each, *ignore) for each in v1.spec["containers"] if each is not main]
    mine = [_bare(each, *ignore) for each in pod.spec["containers"] if each is not ours]
    first = [
        _bare(each) for each in v1.spec.get("initContainers") or () if each["name"] not in (WAIT_FOR_MASTER, DELIVERY)
    ]
    second = [_bare(each) for each in pod.spec.get("initContainers") or ()]
    if (theirs, first) != (mine, second):
        return Verdict.DIFFERS, f"{v1.name}: the further containers are not the same"
    waits = [
        each["name"] for each in v1.spec.get("initContainers") or () if each["name"] in (WAIT_FOR_MASTER, DELIVERY)
    ]
    if WAIT_FOR_MASTER in waits:
        return Verdict.SAME, "workers need not wait for the master's name: JobSet publishes it before they start"
    return (Verdict.SAME, "kubectl need not be delivered") if waits else EQUAL


def _main_container(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    """What else the main container says: probes, working directory, security, ports."""
    theirs, ours = _containers(converted, v1, pod)
    compared = ("name", "image", "command", "args", "env", "resources", "volumeMounts", "ports")
    port = converted.job.kind.port_name

    def ports(container: Json) -> list[Any]:
        return [_bare(each) for each in container.get("ports") or () if each.get("name")]

    wanted = [each for each in ports(theirs) if each in ports(ours) or each.get("name") != port]
    if _bare(theirs, *compared) != _bare(ours, *compared) or [each for each in wanted if each not in ports(ours)]:
        return Verdict.DIFFERS, f"{v1.name}: the container's further fields are not the same"
    if theirs["name"] != ours["name"]:
        return Verdict.SAME, f"the container {theirs['name']} is now named {ours['name']}"
    return EQUAL


def _pod_fields(converted: Converted, v1: V1Pod, pod: Pod) -> Answer:
    compared = ["containers", "initContainers", "volumes", "restartPolicy"]
    if converted.job.kind is MPI:
        compared.append("serviceAccountName")
    theirs, ours = _bare(v1.spec, *compared), _bare(pod.spec, *compared)
    if converted.runtime is not None and "podGroupPolicy" in converted.runtime["spec"]:
        for field in ("schedulerName", "priorityClassName"):
            theirs.setdefault(field, ours.get(field)) if field in ours else None
    if wrong := sorted(key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key)):
        return Verdict.DIFFERS, f"{v1.name}: {', '.join(wrong)}"
    own = v1.spec.get("serviceAccountName")
    if converted.job.kind is MPI and own and own != pod.spec.get("serviceAccountName"):
        if own != f"{converted.job.name}-launcher":
            return Verdict.DIFFERS, f"{v1.name}: serviceAccountName"
        return Verdict.SAME, "the launcher needs no account that may exec into pods"
    return EQUAL


ASPECTS: dict[str, Callable[[Converted, V1Pod, Pod], Answer]] = {
    "image": _image,
    "command": _command,
    "resources": _resources,
    "env": _own_variables,
    "v1's variables": _v1_variables,
    "volumes": _volumes,
    "labels": _labels,
    "annotations": _annotations,
    "container": _main_container,
    "other containers": _others,
    "pod fields": _pod_fields,
}


def _hosts(converted: Converted, rendered: list[Json]) -> Finding:
    """The hosts that mpirun is given, with their slots."""
    job = converted.job
    slots = job.spec.get("slotsPerWorker", 1)
    expected = {converted.layout.host("Worker", index): slots for index in range(job.replicas["Worker"].count)}
    if launcher_trains(job):
        expected[converted.layout.host("Launcher", 0)] = slots
    file = next(item["data"]["hostfile"] for item in rendered if item["kind"] == "ConfigMap")
    found = dict(_host_lines(file))
    if found != expected:
        return Finding("hosts", Verdict.DIFFERS, f"the hostfile has {found}, and should have {expected}")
    reason = "the same pods and slots under their new names"
    return Finding("hosts", Verdict.SAME, f"{reason}; rank 0 is on a worker" if launcher_trains(job) else reason)


def _host_lines(text: str) -> Iterator[tuple[str, int]]:
    for line in text.split("\n"):
        if line:
            host, _, slots = line.replace(" slots=", ":").partition(":")
            yield host, int(slots)


def _env(container: Json) -> dict[str, Json]:
    """By name, with references expanded; of two entries the later one counts."""
    return {entry["name"]: entry for entry in resolve(container.get("env") or [], {})}


def _equal(theirs: Any, ours: Any, what: str = "") -> Answer:
    return EQUAL if theirs == ours else (Verdict.DIFFERS, what or f"{theirs!r} became {ours!r}")


def _amounts(resources: Any) -> Any:
    """Requests and limits as amounts; what has a limit and no request requests the limit."""
    given = resources or {}
    limits = {name: parse_quantity(str(value)) for name, value in (given.get("limits") or {}).items()}
    requests = {name: parse_quantity(str(value)) for name, value in (given.get("requests") or {}).items()}
    return limits, {**limits, **requests}


def _bare(value: Any, *without: str) -> Any:
    """The value without members that say nothing, and without those named."""
    if isinstance(value, dict):
        members = {key: _bare(member) for key, member in value.items() if key not in without}
        return {key: member for key, member in members.items() if member not in (None, {}, [], "")}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def differences(findings: list[Finding], accepted: set[str]) -> list[Finding]:
    """What differs and was not accepted by name."""
    return [finding for finding in findings if finding.verdict is Verdict.DIFFERS and finding.aspect not in accepted]
