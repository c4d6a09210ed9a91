"""The kinds that an installation may consist of, with what a client needs to reach them."""

from __future__ import annotations

from trainwright.api import resources
from trainwright.api.resources import Resource
from trainwright.schema.jsonobject import Json

_RBAC, _ADMISSION, _MONITORING = "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "monitoring.coreos.com"

KINDS = {
    each.kind: each
    for each in (
        resources.NAMESPACES,
        resources.CUSTOM_RESOURCE_DEFINITIONS,
        resources.CLUSTER_TRAINING_RUNTIMES,
        resources.SERVICE_ACCOUNTS,
        resources.CONFIG_MAPS,
        resources.SERVICES,
        resources.PRIORITY_CLASSES,
        Resource("apps", "v1", "deployments", "Deployment"),
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
        Resource(_RBAC, "v1", "roles", "Role"),
        Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
        Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
        Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        Resource(_ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False),
        Resource(
            _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
        ),
        Resource(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False),
        Resource(
            _ADMISSION,
            "v1",
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            namespaced=False,
        ),
        Resource("cert-manager.io", "v1", "issuers", "Issuer"),
        Resource("cert-manager.io", "v1", "certificates", "Certificate"),
        Resource(_MONITORING, "v1", "servicemonitors", "ServiceMonitor"),
        Resource(_MONITORING, "v1", "prometheusrules", "PrometheusRule"),
    )
}


def resource_of(item: Json) -> Resource:
    return KINDS[item["kind"]]
