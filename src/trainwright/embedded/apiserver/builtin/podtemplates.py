"""Defaults of a pod's spec, wherever it stands: in a pod or in a template."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def default_pod_spec(spec: Json, *, is_pod: bool) -> None:
    """What kube-apiserver fills in. A few defaults hold for pods only, not for templates."""
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
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if host_network and not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in PROBES:
        if container.get(name) is not None:
            _probe(container[name])
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and hook.get("httpGet") is not None:
            _http_get(hook["httpGet"])


def _pull_policy(image: str) -> str:
    """What may change under its name is fetched anew."""
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
        source = volume.get(name)
        if source is not None:
            source.setdefault("defaultMode", 420)
    if volume.get("image") is not None:
        volume["image"].setdefault("pullPolicy", _pull_policy(volume["image"].get("reference", "")))
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            if item.get("fieldRef") is not None:
                item["fieldRef"].setdefault("apiVersion", "v1")
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _requests_from_limits(container: Json) -> None:
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)
