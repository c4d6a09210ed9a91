"""The built-in kinds, in the order of discovery."""

from __future__ import annotations

from trainwright.clock import Clock
from trainwright.embedded.apiserver.builtin.access import (
    ClusterRoleBindings,
    ClusterRoles,
    RoleBindings,
    Roles,
    ServiceAccounts,
)
from trainwright.embedded.apiserver.builtin.autoscaling import HorizontalPodAutoscalers
from trainwright.embedded.apiserver.builtin.cluster import Leases, Namespaces, PriorityClasses, RuntimeClasses
from trainwright.embedded.apiserver.builtin.configuration import ConfigMaps, ControllerRevisions, Secrets
from trainwright.embedded.apiserver.builtin.customresourcedefinitions import CustomResourceDefinitions
from trainwright.embedded.apiserver.builtin.events import CoreEvents, Events
from trainwright.embedded.apiserver.builtin.jobs import Jobs
from trainwright.embedded.apiserver.builtin.kind import BuiltinKind
from trainwright.embedded.apiserver.builtin.limitranges import LimitRanges
from trainwright.embedded.apiserver.builtin.metrics import METRICS_KINDS
from trainwright.embedded.apiserver.builtin.nodes import Nodes
from trainwright.embedded.apiserver.builtin.podgroups import PodGroups
from trainwright.embedded.apiserver.builtin.pods import Bindings, Pods
from trainwright.embedded.apiserver.builtin.reviews import (
    LocalSubjectAccessReviews,
    Review,
    SelfSubjectAccessReviews,
    SelfSubjectReviews,
    SelfSubjectRulesReviews,
    SubjectAccessReviews,
    TokenReviews,
)
from trainwright.embedded.apiserver.builtin.services import Services
from trainwright.embedded.apiserver.builtin.storage import PersistentVolumeClaims, PersistentVolumes, StorageClasses
from trainwright.embedded.apiserver.builtin.webhooks import (
    MutatingWebhookConfigurations,
    ValidatingWebhookConfigurations,
)
from trainwright.embedded.apiserver.types import Type

KINDS: tuple[type[BuiltinKind], ...] = (
    Namespaces,
    Pods,
    Bindings,
    ConfigMaps,
    Secrets,
    CoreEvents,
    Services,
    ServiceAccounts,
    Nodes,
    PersistentVolumes,
    PersistentVolumeClaims,
    LimitRanges,
    Events,
    Jobs,
    ControllerRevisions,
    HorizontalPodAutoscalers,
    Leases,
    PriorityClasses,
    StorageClasses,
    RuntimeClasses,
    Roles,
    RoleBindings,
    ClusterRoles,
    ClusterRoleBindings,
    SelfSubjectAccessReviews,
    SelfSubjectRulesReviews,
    SubjectAccessReviews,
    LocalSubjectAccessReviews,
    TokenReviews,
    SelfSubjectReviews,
    CustomResourceDefinitions,
    ValidatingWebhookConfigurations,
    MutatingWebhookConfigurations,
)


ALPHA_KINDS: tuple[type[BuiltinKind], ...] = (PodGroups,)
"""Kinds that a cluster serves only with feature gates, and that the local scheduler knows."""


def builtin_types(clock: Clock, *, with_metrics: bool = False, with_alpha: bool = False) -> list[Type]:
    """New served types for one server, so that two servers in one process share nothing. Metrics come from nodes."""
    more = (*(ALPHA_KINDS if with_alpha else ()), *(METRICS_KINDS if with_metrics else ()))
    return [kind(clock).served() for kind in (*KINDS, *more)]


def review_kinds() -> frozenset[str]:
    """The plurals of the review kinds, which are answered and never stored."""
    return frozenset(kind.plural for kind in KINDS if issubclass(kind, Review))
