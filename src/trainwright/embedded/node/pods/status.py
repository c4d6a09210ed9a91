"""A pod's status, as a kubelet writes it.

In: the Pod, its supervisor's record, the node's facts. Out: the `status` to store. Pure; times come from the record
and from `now`. A condition keeps its lastTransitionTime while its status stays, so an unchanged pod gives an unchanged
status.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainwright.embedded.node.pods.record import ContainerRecord, PodRecord
from trainwright.schema.jsonobject import Json

LOST_EXIT_CODE = 137


@dataclass(frozen=True, slots=True)
class Reporter:
    """Makes the statuses of one node's pods."""

    host_address: str

    def of_record(self, pod: Json, record: PodRecord, address: str, now: str, *, lost: bool = False) -> Json:
        """The status of a pod that has been started. `lost`: its supervisor died without recording the pod's end."""
        spec = pod["spec"]
        if lost:
            record = _lost(record, now)
        init = self._container_statuses(spec.get("initContainers") or (), record["initContainers"], init=True)
        main = self._container_statuses(spec["containers"], record["containers"], init=False)
        phase = _phase(spec, record)
        initialized = all(_is_through(c, record) for c in spec.get("initContainers") or ())
        sidecars = [record["initContainers"][c["name"]] for c in spec.get("initContainers") or () if is_sidecar(c)]
        ready = phase == "Running" and all(c["ready"] for c in (*record["containers"].values(), *sidecars))
        over = (
            {"reason": "PodCompleted"} if phase == "Succeeded" else {"reason": "PodFailed"} if phase == "Failed" else {}
        )
        why_not = over or {
            "reason": "ContainersNotReady",
            "message": _unready([*main, *(s for s in init if s["name"] in _sidecars(spec))]),
        }
        not_initialized = {"reason": "ContainersNotInitialized", "message": _incomplete(init)}
        conditions = [
            ("PodReadyToStartContainers", phase not in ("Succeeded", "Failed"), {}),
            (
                "Initialized",
                initialized,
                {"reason": "PodCompleted"} if phase == "Succeeded" else {} if initialized else not_initialized,
            ),
            ("Ready", ready, {} if ready else why_not),
            ("ContainersReady", ready, {} if ready else why_not),
        ]
        status: Json = {
            "phase": phase,
            "conditions": _conditions(pod, conditions, now),
            "hostIP": self.host_address,
            "hostIPs": [{"ip": self.host_address}],
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": record["startedAt"],
            "containerStatuses": main,
            "qosClass": pod.get("status", {}).get("qosClass") or qos_class(spec),
        }
        if init:
            status["initContainerStatuses"] = init
        if lost:
            status["reason"] = "SupervisorLost"
            status["message"] = "the pod's supervisor died, and its containers with it"
        return status

    def of_waiting(self, pod: Json, reason: str, message: str, now: str) -> Json:
        """The status of a pod that is not started yet."""
        waiting = {"waiting": {"reason": reason, "message": message}}
        containers = {c["name"]: _never_run(waiting) for c in pod["spec"]["containers"]}
        unready = f"containers with unready status: [{' '.join(containers)}]"
        why_not = {"reason": "ContainersNotReady", "message": unready}
        return {
            "phase": "Pending",
            "conditions": _conditions(
                pod, [("Initialized", True, {}), ("Ready", False, why_not), ("ContainersReady", False, why_not)], now
            ),
            "hostIP": self.host_address,
            "hostIPs": [{"ip": self.host_address}],
            "startTime": pod.get("status", {}).get("startTime") or now,
            "containerStatuses": self._container_statuses(pod["spec"]["containers"], containers, init=False),
            "qosClass": pod.get("status", {}).get("qosClass") or qos_class(pod["spec"]),
        }

    def of_refused(self, pod: Json, reason: str, message: str, now: str) -> Json:
        """The status of a pod that fails without having been started."""
        return {
            "phase": "Failed",
            "reason": reason,
            "message": message,
            "conditions": _conditions(pod, [("Ready", False, {"reason": "PodFailed"})], now),
            "startTime": pod.get("status", {}).get("startTime") or now,
            "qosClass": pod.get("status", {}).get("qosClass") or qos_class(pod["spec"]),
        }

    def _container_statuses(
        self, containers: Iterable[Json], records: dict[str, ContainerRecord], *, init: bool
    ) -> list[Json]:
        statuses = []
        for container in containers:
            record = records[container["name"]]
            status: Json = {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": "",
                "ready": _succeeded(record["state"]) if init and not is_sidecar(container) else record["ready"],
                "restartCount": record["restartCount"],
                "started": record.get("started", "running" in record["state"]),
                "state": record["state"],
                "lastState": record["lastState"],
            }
            statuses.append(status)
        return statuses


def is_sidecar(container: Json) -> bool:
    """Whether an init container is a sidecar."""
    return container.get("restartPolicy") == "Always"


def _sidecars(spec: Json) -> set[str]:
    return {container["name"] for container in spec.get("initContainers") or () if is_sidecar(container)}


def _is_through(container: Json, record: PodRecord) -> bool:
    """Whether an init container lets the next one start: it has succeeded, or is a sidecar that has started."""
    found = record["initContainers"][container["name"]]
    if is_sidecar(container):  # one that is being restarted has started before
        return bool(found.get("started") or found["lastState"])
    return _succeeded(found["state"])


def _never_run(state: Json) -> ContainerRecord:
    return {"state": state, "lastState": {}, "restartCount": 0, "ready": False}


def _succeeded(state: Json) -> bool:
    return bool(state.get("terminated", {}).get("exitCode") == 0)


def _phase(spec: Json, record: PodRecord) -> str:
    """The pod's phase. A pod that was ended before its containers began has failed."""
    main = [container["state"] for container in record["containers"].values()]
    if record["done"]:
        return "Succeeded" if all(_succeeded(state) for state in main) else "Failed"
    if any("waiting" not in state for state in main):
        return "Running"
    return "Running" if any(container["lastState"] for container in record["containers"].values()) else "Pending"


def _lost(record: PodRecord, now: str) -> PodRecord:
    """The record of a pod whose supervisor is dead: every container that ran has ended."""

    def end(container: ContainerRecord) -> ContainerRecord:
        state = container["state"]
        if "terminated" in state:
            return container
        ended: Json = {
            "exitCode": LOST_EXIT_CODE,
            "reason": "ContainerStatusUnknown",
            "message": "The container could not be located when the pod was terminated",
            "finishedAt": now,
        }
        if started := state.get("running", {}).get("startedAt"):
            ended["startedAt"] = started
        return {**container, "state": {"terminated": ended}, "ready": False, "started": False}

    return {
        **record,
        "initContainers": {name: end(container) for name, container in record["initContainers"].items()},
        "containers": {name: end(container) for name, container in record["containers"].items()},
        "done": True,
    }


def _unready(statuses: list[Json]) -> str:
    return f"containers with unready status: [{' '.join(s['name'] for s in statuses if not s['ready'])}]"


def _incomplete(statuses: list[Json]) -> str:
    return f"containers with incomplete status: [{' '.join(s['name'] for s in statuses if not s['ready'])}]"


def _conditions(pod: Json, wanted: list[tuple[str, bool, Json]], now: str) -> list[Json]:
    """The wanted conditions, and those of other writers (the scheduler's PodScheduled) unchanged."""
    present = {condition["type"]: condition for condition in pod.get("status", {}).get("conditions") or ()}
    result = []
    for name, true, why in wanted:
        status = "True" if true else "False"
        before = present.pop(name, None)
        changed = now if before is None or before["status"] != status else before["lastTransitionTime"]
        result.append({"type": name, "status": status, "lastTransitionTime": changed, **why})
    return result + list(present.values())


def with_condition(conditions: list[Json], wanted: tuple[str, bool, Json], now: str) -> list[Json]:
    """The conditions with this one in its place, or at the end."""
    pod: Json = {"status": {"conditions": conditions}}
    [made] = [one for one in _conditions(pod, [wanted], now) if one["type"] == wanted[0]]
    return [one for one in conditions if one["type"] != wanted[0]] + [made]


def qos_class(spec: Json) -> str:
    """BestEffort, Burstable or Guaranteed, by requests and limits of cpu and memory."""
    containers = (spec.get("initContainers") or []) + spec["containers"]
    resources = [container.get("resources") or {} for container in containers]
    counted = ("cpu", "memory")
    if not any((r.get(kind) or {}).get(name) for r in resources for kind in ("requests", "limits") for name in counted):
        return "BestEffort"
    guaranteed = all(
        (limits := r.get("limits") or {}).get(name)
        and str((r.get("requests") or limits).get(name, limits[name])) == str(limits[name])
        for r in resources
        for name in counted
    )
    return "Guaranteed" if guaranteed else "Burstable"
