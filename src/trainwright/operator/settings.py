"""What an operator is told when it is made, and what follows from it. Nothing of it changes while the operator runs."""

from __future__ import annotations

import msgspec

from trainwright.api.configuration import Configuration, local, seconds
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.controlloop.election import ElectionConfig
from trainwright.operator.certificates.material import Policy
from trainwright.operator.runtimes.pruner import UNUSED_SECONDS


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    configuration: Configuration = msgspec.field(default_factory=local)
    namespace: str = SYSTEM_NAMESPACE
    """Where the operator's own Service, Secret and Lease are."""
    identity: str = "trainwright"
    """Who holds the Lease."""
    certificates: Policy | None = None
    """How certificates are made; None for the usual way."""
    local_runs: bool = False
    """Whether a local node runs the pods: it keeps runs, and pods tell it which is theirs and where their ports are."""
    unused_revision_seconds: float = UNUSED_SECONDS
    """How long a runtime revision is kept after its last use."""

    @property
    def service(self) -> str:
        """The name that webhooks and the progress server are reached by."""
        return f"{self.configuration.cert_management.webhook_service_name}.{self.namespace}.svc"

    @property
    def policy(self) -> Policy:
        return self.certificates or Policy(self.service)

    @property
    def progress_server(self) -> str:
        """The progress server's address for pods; empty when there is none."""
        config = self.configuration
        return f"https://{self.service}:{config.status_server.port}" if config.reports_progress else ""

    @property
    def metrics_over_tls(self) -> bool:
        return self.configuration.metrics.bind_address != "0" and self.configuration.metrics.secure_serving

    @property
    def needs_certificates(self) -> bool:
        return self.configuration.webhook.enable or self.configuration.reports_progress or self.metrics_over_tls

    @property
    def election(self) -> ElectionConfig | None:
        """The Lease to hold; None where a single replica runs without one."""
        config = self.configuration.leader_election
        if config is None or not config.leader_elect:
            return None
        return ElectionConfig(
            namespace=config.resource_namespace or self.namespace,
            name=config.resource_name,
            identity=self.identity,
            lease_duration=seconds(config.lease_duration),
            renew_deadline=seconds(config.renew_deadline),
            retry_period=seconds(config.retry_period),
        )
