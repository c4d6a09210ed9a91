"""The operator's configuration (`config.trainer.kubeflow.org/v1alpha1`, kind `Configuration`), read strictly.

In: the decoded file, or nothing for the defaults. Out: a `Configuration`, or a `ConfigurationError` that lists every
fault. It has all fields of the reference with their defaults, and ours: `webhook.enable`, `statusServer.host`,
`certManagement.certDir`, `runtimeGuard.enable` and all of `plugins`, `logging` and `tracing`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from trainwright.schema.errors import FieldError, aggregate, invalid

API_VERSION = "config.trainer.kubeflow.org/v1alpha1"
PROGRESS_GATE = "TrainJobStatus"
GANG_GATE = "KubernetesGang"
TRAIN_JOB = "TrainJob.trainer.kubeflow.org"
WORKERS = 16  # TrainJobs worked on at once: a pass mostly waits for the API server
LOG_FORMATS = ("text", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")
GATES = {PROGRESS_GATE: False, GANG_GATE: False}
CERT_DIR = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - the reference's path, mounted read-only


class ConfigurationError(Exception):
    """The configuration file cannot be read, or is invalid; the message lists the faults."""


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class WebhookConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    port: int = 9443
    host: str = ""  # all interfaces
    enable: bool = True


class MetricsAuth(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    enabled: bool = False


class MetricsConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    bind_address: str = ":8443"  # "0" disables
    secure_serving: bool = True
    auth: MetricsAuth = MetricsAuth()


class HealthConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    health_probe_bind_address: str = ":8081"  # "0" disables
    readiness_endpoint_name: str = "readyz"
    liveness_endpoint_name: str = "healthz"


class LeaderElectionConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    leader_elect: bool = False
    resource_lock: str = "leases"
    resource_namespace: str = ""
    resource_name: str = ""
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"


class ControllerConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    group_kind_concurrency: dict[str, int] = {}


class CertManagementConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    enable: bool = True
    webhook_service_name: str = "kubeflow-trainer-controller-manager"
    webhook_secret_name: str = "kubeflow-trainer-webhook-cert"  # noqa: S105 - the name of an object
    cert_dir: str = CERT_DIR


class ClientConnectionConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    qps: float = 0.0  # for each kind; 0 is no limit, and the API server's own priority and fairness decides
    burst: int = 100


class StatusServerConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    port: int = 10443
    host: str = ""
    qps: float = 5.0
    burst: int = 10


class TLSConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    min_version: str = ""
    cipher_suites: list[str] = []
    next_protos: list[str] = []


class RuntimeGuardConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    enable: bool = True


class PluginsConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The plugins to run. `*` stands for all that are not named; enabled plugins run in the order they are listed."""

    enabled_plugins: list[str] = []
    disabled_plugins: list[str] = []
    directory: str = ""  # none


class LoggingConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    format: str = "text"
    level: str = "info"


class TracingConfig(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    endpoint: str = ""  # none: nothing is traced, and nothing of OpenTelemetry is imported
    sampling_rate_per_million: int = 10000


class Configuration(_Strict, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str = API_VERSION
    kind: str = "Configuration"
    webhook: WebhookConfig = WebhookConfig()
    metrics: MetricsConfig = MetricsConfig()
    health: HealthConfig = HealthConfig()
    leader_election: LeaderElectionConfig | None = None
    controller: ControllerConfig = ControllerConfig()
    cert_management: CertManagementConfig = CertManagementConfig()
    client_connection: ClientConnectionConfig = ClientConnectionConfig()
    status_server: StatusServerConfig = StatusServerConfig()
    feature_gates: dict[str, bool] = {}
    tls: TLSConfig = TLSConfig()
    runtime_guard: RuntimeGuardConfig = RuntimeGuardConfig()
    plugins: PluginsConfig = PluginsConfig()
    logging: LoggingConfig = LoggingConfig()
    tracing: TracingConfig = TracingConfig()

    @property
    def reports_progress(self) -> bool:
        return self._is_on(PROGRESS_GATE)

    @property
    def gangs_by_kubernetes(self) -> bool:
        return self._is_on(GANG_GATE)

    def _is_on(self, gate: str) -> bool:
        return self.feature_gates.get(gate, self.feature_gates.get("AllAlpha", GATES[gate]))

    def workers(self, group_kind: str) -> int:
        default = WORKERS if group_kind == TRAIN_JOB else 1
        return self.controller.group_kind_concurrency.get(group_kind, default)


def configuration_of(document: Any, *, feature_gates: str = "") -> Configuration:
    """The configuration in a decoded file. `feature_gates` (`A=true,B=false`, from the command line) override it."""
    try:
        configuration = msgspec.convert(document or {}, Configuration)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"failed to decode config file: {error}") from error
    if configuration.api_version != API_VERSION or configuration.kind != "Configuration":
        raise ConfigurationError(
            f"failed to decode config file: {configuration.api_version} {configuration.kind} is not {API_VERSION}"
            " Configuration"
        )
    if feature_gates:
        gates = {**configuration.feature_gates, **_gates(feature_gates)}
        configuration = msgspec.structs.replace(configuration, feature_gates=gates)
    faults = list(_faults(configuration))
    if faults:
        raise ConfigurationError(f"invalid configuration: {aggregate(faults)}")
    return configuration


def local() -> Configuration:
    """The configuration for a laptop: one replica, no servers, no rate limit."""
    return Configuration(
        webhook=WebhookConfig(enable=False),
        metrics=MetricsConfig(bind_address="0"),
        health=HealthConfig(health_probe_bind_address="0"),
    )


def seconds(duration: str) -> float:
    """The seconds in a duration as Go writes it: `15s`, `1m30s`, `500ms`."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise ValueError(f"{duration!r} is not a duration; write 15s, 1m30s or 500ms")
    return sum(float(number) * units[unit] for number, unit in parts)


def _faults(configuration: Configuration) -> list[FieldError]:
    faults: list[FieldError] = []
    for field, port in (
        ("webhook.port", configuration.webhook.port),
        ("statusServer.port", configuration.status_server.port),
    ):
        if not 1 <= port <= 65535:
            faults.append(invalid(field, port, "must be between 1 and 65535"))
    connection, server = configuration.client_connection, configuration.status_server
    for field, value in (
        ("clientConnection.qps", connection.qps),
        ("clientConnection.burst", connection.burst),
        ("statusServer.qps", server.qps),
        ("statusServer.burst", server.burst),
    ):
        if value < 0:
            faults.append(invalid(field, value, "must be greater than or equal to 0"))
    for kind, workers in configuration.controller.group_kind_concurrency.items():
        if workers < 1:
            faults.append(invalid(f"controller.groupKindConcurrency[{kind}]", workers, "must be greater than 0"))
    for gate in configuration.feature_gates:
        if gate not in GATES and gate != "AllAlpha":
            faults.append(invalid(f"featureGates[{gate}]", gate, f"unknown feature gate; there is {', '.join(GATES)}"))
    if configuration.tls.min_version not in ("", "1.2", "1.3"):
        faults.append(invalid("tls.minVersion", configuration.tls.min_version, "must be 1.2 or 1.3"))
    faults.extend(_election_faults(configuration.leader_election))
    faults.extend(_observation_faults(configuration))
    return faults


def _observation_faults(configuration: Configuration) -> list[FieldError]:
    faults = []
    for field, value, known in (
        ("logging.format", configuration.logging.format, LOG_FORMATS),
        ("logging.level", configuration.logging.level, LOG_LEVELS),
    ):
        if value not in known:
            faults.append(invalid(field, value, f"must be one of {', '.join(known)}"))
    tracing = configuration.tracing
    if tracing.endpoint and not tracing.endpoint.startswith(("http://", "https://")):
        faults.append(invalid("tracing.endpoint", tracing.endpoint, "must be a URL, such as http://collector:4318"))
    if not 0 <= tracing.sampling_rate_per_million <= 1_000_000:
        rate = tracing.sampling_rate_per_million
        faults.append(invalid("tracing.samplingRatePerMillion", rate, "must be between 0 and 1000000"))
    return faults


def _election_faults(election: LeaderElectionConfig | None) -> list[FieldError]:
    if election is None or not election.leader_elect:
        return []
    faults = []
    if not election.resource_name:
        faults.append(invalid("leaderElection.resourceName", "", "is required when leaderElect is true"))
    if election.resource_lock not in ("", "leases"):
        faults.append(invalid("leaderElection.resourceLock", election.resource_lock, "only leases are supported"))
    try:
        ordered = seconds(election.retry_period) < seconds(election.renew_deadline) < seconds(election.lease_duration)
    except ValueError as error:
        return [*faults, invalid("leaderElection", election.lease_duration, str(error))]
    if not ordered:
        detail = "retryPeriod must be less than renewDeadline, and that less than leaseDuration"
        faults.append(invalid("leaderElection.leaseDuration", election.lease_duration, detail))
    return faults


def _gates(text: str) -> dict[str, bool]:
    gates = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or value not in ("true", "false"):
            raise ConfigurationError(f"feature gate {part!r}: write NAME=true or NAME=false")
        gates[name] = value == "true"
    return gates
