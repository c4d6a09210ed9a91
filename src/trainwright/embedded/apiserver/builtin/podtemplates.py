"""Defaults of pod specs, in pods and in templates."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def default_pod_spec(spec: Json, *, is_pod: bool) -> None:
    """Fill in kube-apiserver's defaults. A few of them are for pods only, not for templates."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName") and not spec.get("serviceAccount"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount") and not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    host_network = is_pod and bool(spec.get("hostNetwork"))
    for volume in spec.get("volumes") or ():
        _volume(volume)
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            default_container(container, host_network=host_network)
            if is_pod and group != "ephemeralContainers":
                _requests_from_limits(container)
    if is_pod:
        spec.setdefault("enableServiceLinks", True)


def default_container(container: Json, *, host_network: bool = False) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    container.setdefault("resources", {})
    for port in container.get("ports") or ():
        _port(port, host_network=host_network)
    for variable in container.get("env") or ():
        _field_reference(variable.get("valueFrom") or {})
    for name in PROBES:
        if container.get(name) is not None:
            _probe(container[name])
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and hook.get("httpGet") is not None:
            _http_get(hook["httpGet"])


def _port(port: Json, *, host_network: bool) -> None:
    if not port.get("protocol"):
        port["protocol"] = "TCP"
    if host_network and not port.get("hostPort"):
        port["hostPort"] = port.get("containerPort")


def _field_reference(source: Json) -> None:
    """The source of a variable or of a file, which may be a field of the pod."""
    if source.get("fieldRef") is not None:
        source["fieldRef"].setdefault("apiVersion", "v1")


def _pull_policy(image: str) -> str:
    """Pull an image again if its tag may move: no tag, or `latest`."""
    name = image.rpartition("/")[2].partition("@")[0]
    _, found, tag = name.partition(":")
    return "Always" if "@" not in image and (not found or tag == "latest") else "IfNotPresent"


def _probe(probe: Json) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(name):
            probe[name] = value
    if probe.get("httpGet") is not None:
        _http_get(probe["httpGet"])
    if probe.get("grpc") is not None:
        probe["grpc"].setdefault("service", "")


def _http_get(action: Json) -> None:
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"


def _volume(volume: Json) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(name) is not None:
            volume[name].setdefault("defaultMode", 420)
    if volume.get("image") is not None:
        volume["image"].setdefault("pullPolicy", _pull_policy(volume["image"].get("reference", "")))
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    _downward_api(volume)
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        _downward_api(source)
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _downward_api(source: Json) -> None:
    for item in (source.get("downwardAPI") or {}).get("items") or ():
        _field_reference(item)


def _requests_from_limits(container: Json) -> None:
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)
