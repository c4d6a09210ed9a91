"""The table of built-in kinds. One line each; behaviour lives in the strategies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainwright.embedded.apiserver.builtin import (
    access,
    autoscaling,
    cluster,
    columns,
    configuration,
    customresourcedefinitions,
    events,
    jobs,
    limitranges,
    nodes,
    pods,
    services,
    storage,
    webhooks,
)
from trainwright.embedded.apiserver.builtin.podcells import pod_conditions
from trainwright.embedded.apiserver.builtin.strategy import BuiltinStrategy, StatusStrategy
from trainwright.embedded.apiserver.types import ALL_VERBS, Column, Strategy, Type
from trainwright.schema import kubernetes

STATUS = {"status": {"verbs": ["get", "patch", "update"]}}
CREATE_ONLY = ("create",)


def _served(
    group: str,
    version: str,
    plural: str,
    kind: str,
    strategy: Strategy,
    *,
    singular: str = "",
    namespaced: bool = True,
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    verbs: tuple[str, ...] = ALL_VERBS,
    subresources: dict[str, Any] | None = None,
    table: tuple[Column, ...] = (),
    more: dict[str, Any] | None = None,
) -> Type:
    api_version = f"{group}/{version}" if group else version
    make_node: Callable[[], Any] | None = None
    if isinstance(strategy, BuiltinStrategy):
        strategy.kind, strategy.api_version = kind, api_version
        package = {"": "core", "apiextensions.k8s.io": "apiextensions"}.get(group) or group.partition(".")[0]
        strategy.wire = strategy.wire or f"{package}/{version}.{kind}"
        make_node = strategy.node
    extra: dict[str, Any] = dict(more or {})
    if make_node is not None:
        extra.setdefault("make_node", make_node)
    if kubernetes.has_kind(api_version, kind):
        extra.setdefault("schema", lambda: kubernetes.definition(kubernetes.definition_name(api_version, kind)))
    return Type(
        group=group,
        version=version,
        plural=plural,
        singular=singular or kind.lower(),
        kind=kind,
        namespaced=namespaced,
        strategy=strategy,
        short_names=short,
        categories=categories,
        verbs=verbs,
        subresources=dict(subresources or {}),
        columns=table,
        **extra,
    )


def builtin_types() -> list[Type]:
    """Made anew for each server, so that two servers in one process share nothing."""
    return [*_core(), *_workloads(), *_access(), *_configuration()]


def _core() -> list[Type]:
    return [
        _served(
            "",
            "v1",
            "namespaces",
            "Namespace",
            cluster.Namespaces(),
            namespaced=False,
            short=("ns",),
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
            subresources={"finalize": {"verbs": ["update"]}, **STATUS},
            table=columns.NAMESPACES,
        ),
        _served(
            "",
            "v1",
            "pods",
            "Pod",
            pods.Pods(),
            short=("po",),
            categories=("all",),
            subresources=pods.SUBRESOURCES,
            table=columns.PODS,
            more={"row_conditions": pod_conditions},
        ),
        _served("", "v1", "bindings", "Binding", BuiltinStrategy(), verbs=CREATE_ONLY),
        _served(
            "", "v1", "configmaps", "ConfigMap", configuration.ConfigMaps(), short=("cm",), table=columns.CONFIG_MAPS
        ),
        _served("", "v1", "secrets", "Secret", configuration.Secrets(), table=columns.SECRETS),
        _served("", "v1", "events", "Event", events.CoreEvents(), short=("ev",), table=columns.EVENTS),
        _served(
            "",
            "v1",
            "services",
            "Service",
            services.Services(),
            short=("svc",),
            categories=("all",),
            subresources=STATUS,
            table=columns.SERVICES,
        ),
        _served(
            "",
            "v1",
            "serviceaccounts",
            "ServiceAccount",
            access.ServiceAccounts(),
            short=("sa",),
            subresources={
                "token": {
                    "verbs": ["create"],
                    "group": "authentication.k8s.io",
                    "version": "v1",
                    "kind": "TokenRequest",
                }
            },
            table=columns.SERVICE_ACCOUNTS,
        ),
        _served(
            "",
            "v1",
            "nodes",
            "Node",
            nodes.Nodes(),
            namespaced=False,
            short=("no",),
            subresources=STATUS,
            table=columns.NODES,
        ),
        _served(
            "",
            "v1",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            storage.PersistentVolumeClaims(),
            short=("pvc",),
            subresources=STATUS,
            table=columns.PERSISTENT_VOLUME_CLAIMS,
        ),
        _served(
            "",
            "v1",
            "limitranges",
            "LimitRange",
            limitranges.LimitRanges(),
            short=("limits",),
            table=columns.LIMIT_RANGES,
        ),
        _served(
            "events.k8s.io",
            "v1",
            "events",
            "Event",
            events.Events(),
            short=("ev",),
            table=columns.EVENTS_V1,
            more={
                "storage_resource": "events",
                "to_storage": events.to_core,
                "from_storage": events.from_core,
            },
        ),
    ]


def _workloads() -> list[Type]:
    return [
        _served(
            "batch",
            "v1",
            "jobs",
            "Job",
            jobs.Jobs(),
            categories=("all",),
            subresources=STATUS,
            table=columns.JOBS,
            more={"from_storage": jobs.from_storage},
        ),
        _served(
            "apps",
            "v1",
            "controllerrevisions",
            "ControllerRevision",
            configuration.ControllerRevisions(),
            table=columns.CONTROLLER_REVISIONS,
        ),
        _served(
            "autoscaling",
            "v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            autoscaling.HorizontalPodAutoscalers(),
            short=("hpa",),
            categories=("all",),
            subresources=STATUS,
            table=columns.HORIZONTAL_POD_AUTOSCALERS,
        ),
        _served("coordination.k8s.io", "v1", "leases", "Lease", cluster.Leases(), table=columns.LEASES),
        _served(
            "scheduling.k8s.io",
            "v1",
            "priorityclasses",
            "PriorityClass",
            cluster.PriorityClasses(),
            singular="priorityclass",
            namespaced=False,
            short=("pc",),
            table=columns.PRIORITY_CLASSES,
        ),
        _served(
            "node.k8s.io",
            "v1",
            "runtimeclasses",
            "RuntimeClass",
            cluster.RuntimeClasses(),
            namespaced=False,
            table=columns.RUNTIME_CLASSES,
        ),
    ]


def _access() -> list[Type]:
    group = "rbac.authorization.k8s.io"
    authorization, authentication = "authorization.k8s.io", "authentication.k8s.io"

    def review(group: str, plural: str, kind: str, namespaced: bool = False) -> Type:
        return _served(group, "v1", plural, kind, BuiltinStrategy(), namespaced=namespaced, verbs=CREATE_ONLY)

    return [
        _served(group, "v1", "roles", "Role", access.Roles(), table=columns.ROLES),
        _served(group, "v1", "rolebindings", "RoleBinding", access.Bindings(), table=columns.ROLE_BINDINGS),
        _served(
            group, "v1", "clusterroles", "ClusterRole", access.ClusterRoles(), namespaced=False, table=columns.ROLES
        ),
        _served(
            group,
            "v1",
            "clusterrolebindings",
            "ClusterRoleBinding",
            access.Bindings(),
            namespaced=False,
            table=columns.ROLE_BINDINGS,
        ),
        review(authorization, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        review(authorization, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
        review(authorization, "subjectaccessreviews", "SubjectAccessReview"),
        review(authorization, "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
        review(authentication, "tokenreviews", "TokenReview"),
        review(authentication, "selfsubjectreviews", "SelfSubjectReview"),
    ]


def _configuration() -> list[Type]:
    admission = "admissionregistration.k8s.io"
    return [
        _served(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            customresourcedefinitions.CustomResourceDefinitions(),
            namespaced=False,
            short=("crd", "crds"),
            categories=("api-extensions",),
            subresources=STATUS,
            table=columns.CUSTOM_RESOURCE_DEFINITIONS,
        ),
        _served(
            admission,
            "v1",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            webhooks.WebhookConfigurations(),
            namespaced=False,
            categories=("api-extensions",),
            table=columns.WEBHOOK_CONFIGURATIONS,
        ),
        _served(
            admission,
            "v1",
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
            webhooks.WebhookConfigurations(),
            namespaced=False,
            categories=("api-extensions",),
            table=columns.WEBHOOK_CONFIGURATIONS,
        ),
    ]


def review_kinds() -> frozenset[str]:
    return frozenset(
        {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews", "localsubjectaccessreviews"}
        | {"tokenreviews", "selfsubjectreviews"}
    )


__all__ = ["StatusStrategy", "builtin_types", "review_kinds"]
