"""Figures that somebody outside reads or relies on: buckets of dashboards, names in logs, whose webhooks are ours."""

from __future__ import annotations

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from trainwright.api.configuration import CertManagementConfig, WebhookConfig, local
from trainwright.client import Client
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.controlloop import Key
from trainwright.operator.certificates.material import Policy
from trainwright.operator.figures.metrics import OperatorMetrics
from trainwright.operator.incumbent import AnotherOperator, refuse_incumbent
from trainwright.operator.runtimes.revisions import content_of
from trainwright.operator.settings import Settings
from trainwright.operator.trainjobs.statuses import BURST_SECONDS, MERGE_SECONDS
from trainwright.schema.jsonobject import Json
from unit.operator.world import runtime

# Those of controller-runtime and of client-go's work queue: `histogram_quantile` over replicas of both needs the same.
RECONCILE = ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "60.0"]
QUEUE = ["1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1.0", "10.0", "100.0", "1000.0"]


def buckets(registry: CollectorRegistry, name: str) -> list[str]:
    samples = (sample for family in registry.collect() for sample in family.samples)
    return [sample.labels["le"] for sample in samples if sample.name == f"{name}_bucket"][:-1]


def test_histograms_have_the_buckets_that_dashboards_add_up() -> None:
    metrics = OperatorMetrics()
    metrics.reconciled("c", "success", 0.02)
    metrics.queue_taken("c", 2, 0.5)
    metrics.worked("c", 0.5)
    assert buckets(metrics.registry, "controller_runtime_reconcile_time_seconds") == RECONCILE
    assert buckets(metrics.registry, "workqueue_queue_duration_seconds") == QUEUE
    assert buckets(metrics.registry, "workqueue_work_duration_seconds") == QUEUE


def test_a_status_waits_as_long_as_the_documentation_says() -> None:
    """docs/operator.md: within a second, ten while many start."""
    assert (MERGE_SECONDS, BURST_SECONDS) == (1.0, 10.0)


def test_a_log_names_an_object_as_kubectl_does() -> None:
    assert str(Key("ns", "job")) == "ns/job"
    assert str(Key("", "cluster-wide")) == "cluster-wide"


def test_a_runtimes_labels_are_part_of_its_revision_and_kubectls_notes_are_not() -> None:
    plain, labelled = runtime(), runtime()
    labelled["metadata"]["labels"] = {"a": "b"}
    labelled["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    assert content_of(plain)["metadata"] == {"name": "it"}
    assert content_of(labelled)["metadata"] == {"name": "it", "labels": {"a": "b"}}


def test_certificates_are_for_the_service_unless_said_otherwise() -> None:
    settings = Settings(configuration=local())
    assert settings.policy == Policy(settings.service)
    other = Policy("elsewhere.example")
    assert msgspec.structs.replace(settings, certificates=other).policy is other


# Whose webhooks they are


class Cluster:
    """An API server that says of itself what the test wants, over a transport."""

    def __init__(self, version: str, client_config: Json) -> None:
        self._version, self._config = version, client_config

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def send(self, request: Request, *, deadline: float) -> Answer:
        body: Json = {"gitVersion": self._version}
        if request.path != "/version":
            webhook = {"metadata": {"name": "w"}, "webhooks": [{"clientConfig": self._config}]}
            body = {"metadata": {}, "items": [webhook]}
        return Answer(200, {}, msgspec.json.encode(body))


SERVICE = "kubeflow-trainer-controller-manager"
OURS: Json = {"service": {"name": SERVICE, "namespace": "kubeflow-system"}}


async def refused(config: Json, *, version: str = "v1.36.4", in_cluster: bool = True, webhooks: bool = True) -> bool:
    configuration = msgspec.structs.replace(
        local(),
        webhook=WebhookConfig(enable=webhooks, port=9443),
        cert_management=CertManagementConfig(webhook_service_name=SERVICE),
    )
    settings = Settings(configuration=configuration, namespace="kubeflow-system")
    client = Client(Cluster(version, config))  # type: ignore[arg-type]
    try:
        await refuse_incumbent(client, settings, in_cluster=in_cluster)
    except AnotherOperator:
        return True
    return False


@pytest.mark.parametrize(
    ("config", "in_cluster", "other"),
    [
        (OURS, True, False),
        (OURS, False, True),
        ({"service": {"name": "theirs", "namespace": "kubeflow-system"}}, True, True),
        ({"service": {"name": SERVICE, "namespace": "elsewhere"}}, True, True),
        ({"url": "https://127.0.0.1:9443/x"}, False, False),
        ({"url": "https://127.0.0.1:9444/x"}, False, True),
        ({"url": "https://127.0.0.1/x"}, False, True),
        ({}, False, False),
    ],
)
async def test_webhooks_that_call_somebody_else_mean_another_operator(
    config: Json, in_cluster: bool, other: bool
) -> None:
    assert await refused(config, in_cluster=in_cluster) is other


async def test_without_webhooks_of_its_own_an_operator_is_never_the_one_that_is_called() -> None:
    assert await refused(OURS, webhooks=False)


async def test_a_local_cluster_has_an_operator_of_its_own() -> None:
    assert await refused(OURS, version="v1.36.4+trainwright")
