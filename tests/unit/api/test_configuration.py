"""The configuration file: the reference's fields and defaults, read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

import trainwright
from trainwright.api.configuration import TRAIN_JOB, Configuration, ConfigurationError, seconds
from trainwright.operator.configfile import parse
from trainwright.operator.run import read_configuration

HEAD = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n"


@pytest.mark.parametrize("text", ["", "{}", HEAD])
def test_nothing_said_means_the_defaults(text: str) -> None:
    it = parse(text)
    assert it == Configuration()
    assert (it.webhook.port, it.metrics.bind_address, it.health.health_probe_bind_address) == (9443, ":8443", ":8081")
    assert (it.client_connection.qps, it.client_connection.burst) == (0, 100)
    assert it.leader_election is None
    assert not it.reports_progress


def test_a_part_of_a_block_leaves_the_rest_at_its_defaults() -> None:
    it = parse(HEAD + "webhook: {port: 1}\ncertManagement: {webhookSecretName: mine}\n")
    assert (it.webhook.port, it.webhook.host) == (1, "")
    assert it.cert_management.webhook_service_name == "kubeflow-trainer-controller-manager"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("webhok: {}", "unknown field `webhok`"),
        ("webhook: {prt: 1}", "unknown field `prt`"),
        ("webhook: {port: 1}\nwebhook: {port: 2}", "line 2: duplicate field 'webhook'"),
        ("webhook: [", "failed to decode config file"),
        ("webhook: {port: high}", "Expected `int`"),
        ("apiVersion: v1\nkind: Configuration", "is not config.trainer.kubeflow.org/v1alpha1"),
        (HEAD.replace("kind: Configuration", "kind: Other"), "Other is not"),
        ("webhook: {port: 0}", "invalid configuration: webhook.port: Invalid value: 0: must be between 1 and 65535"),
        ("webhook: {port: 65536}", "must be between 1 and 65535"),
        ("statusServer: {port: 0}", "statusServer.port"),
        (
            "clientConnection: {qps: -1}",
            "clientConnection.qps: Invalid value: -1: must be greater than or equal to 0",
        ),
        ("clientConnection: {burst: -1}", "clientConnection.burst"),
        (
            "controller: {groupKindConcurrency: {TrainJob.trainer.kubeflow.org: 0}}",
            "controller.groupKindConcurrency[TrainJob.trainer.kubeflow.org]: Invalid value: 0: must be greater than 0",
        ),
        ("featureGates: {Nope: true}", "unknown feature gate"),
        ("tls: {minVersion: '1.1'}", "must be 1.2 or 1.3"),
        ("leaderElection: {leaderElect: true}", "leaderElection.resourceName"),
        ("leaderElection: {leaderElect: true, resourceName: x, leaseDuration: 5s}", "must be less than renewDeadline"),
        ("leaderElection: {leaderElect: true, resourceName: x, retryPeriod: soon}", "is not a duration"),
    ],
)
def test_what_is_wrong_is_said_where_it_is(text: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(text)
    assert why in str(caught.value)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"webhook\.port.*statusServer\.qps"):
        parse("webhook: {port: 0}\nstatusServer: {qps: -1}")


def test_the_command_line_has_the_last_word_on_feature_gates() -> None:
    assert parse("featureGates: {TrainJobStatus: false}", feature_gates="TrainJobStatus=true").reports_progress
    assert parse("", feature_gates="AllAlpha=true").reports_progress
    with pytest.raises(ConfigurationError, match="NAME=true"):
        parse("", feature_gates="TrainJobStatus")


def test_workers_are_as_many_as_configured() -> None:
    it = parse("controller: {groupKindConcurrency: {TrainJob.trainer.kubeflow.org: 7}}")
    assert (it.workers("TrainJob.trainer.kubeflow.org"), it.workers("Other")) == (7, 1)


@pytest.mark.parametrize(("text", "value"), [("15s", 15), ("1m30s", 90), ("500ms", 0.5), ("2h", 7200), ("1.5s", 1.5)])
def test_durations_are_gos(text: str, value: float) -> None:
    assert seconds(text) == value


def test_a_file_that_cannot_be_read_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="failed to read config file"):
        read_configuration(tmp_path / "missing")


def test_the_shipped_configuration_can_be_read() -> None:
    shipped = Path(trainwright.__file__).parent / "manifests/base/manager/controller_manager_config.yaml"
    it = read_configuration(shipped)
    assert it.leader_election is not None
    assert it.leader_election.leader_elect
    assert it.workers(TRAIN_JOB) == Configuration().workers(TRAIN_JOB)
