"""The operator that a cluster has already, if that is not us.

A second operator is harmless to TrainJobs, but the API server then trusts the certificate of the last one to start,
and webhooks that call another process fail. `refuse_incumbent` looks before anything is written, at

    /version                 a local cluster runs an operator of its own
    webhook configurations   they call a Service or a URL; ours is the Service we are behind, or our own port
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import Resource
from trainwright.client import Client, Forbidden
from trainwright.operator.certificates.rotation import MUTATING, MUTATING_NAME, VALIDATING, VALIDATING_NAME
from trainwright.operator.settings import Settings

EMBEDDED = "+trainwright"
"""A part of the version that the embedded API server gives."""


class AnotherOperator(Exception):
    """The cluster is served by another operator. The message says by which, and what to do."""


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


class _Service(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _ClientConfig(msgspec.Struct, frozen=True):
    service: _Service | None = None
    url: str | None = None


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    client_config: _ClientConfig = _ClientConfig()


class _WebhookConfiguration(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    webhooks: list[_Webhook] | None = None


async def refuse_incumbent(client: Client, settings: Settings, *, in_cluster: bool) -> None:
    """Raises `AnotherOperator` where this cluster has an operator that is not us. `in_cluster`: we run in a pod of it,
    so that its Services can reach us.
    """
    version, mutating, validating = await asyncio.gather(
        client.raw("/version", decode=_Version),
        _called_by(client, MUTATING, MUTATING_NAME),
        _called_by(client, VALIDATING, VALIDATING_NAME),
    )
    if EMBEDDED in version.git_version:
        raise AnotherOperator(
            "this is a local cluster, which runs an operator of its own; a second one would break its"
            " webhooks until it is started again. With --take-over this operator starts all the same"
        )
    for name, config in [*mutating, *validating]:
        if not _is_ours(config, settings, in_cluster):
            raise AnotherOperator(
                f"the webhook configuration {name} calls {_where(config)}, which is not this operator. Stop"
                " that one and have the webhooks call this one, or give --take-over to start all the same"
            )


async def _called_by(client: Client, resource: Resource, name: str) -> list[tuple[str, _ClientConfig]]:
    try:
        listed = await client.list(
            resource,
            decode=_WebhookConfiguration,
            field_selector=f"metadata.name={name}",
        )
    except Forbidden:  # certificates by cert-manager need no right to read them, and then nothing of them is written
        return []
    return [(name, webhook.client_config) for found in listed.items or () for webhook in found.webhooks or ()]


def _is_ours(config: _ClientConfig, settings: Settings, in_cluster: bool) -> bool:
    if not settings.configuration.webhook.enable:
        return False
    if config.url is not None:
        return (urlsplit(config.url).port or 443) == settings.configuration.webhook.port
    if config.service is None:
        return True
    own = settings.configuration.cert_management.webhook_service_name, settings.namespace
    return in_cluster and (config.service.name, config.service.namespace) == own


def _where(config: _ClientConfig) -> str:
    service = config.service
    return f"Service {service.namespace}/{service.name}" if service else str(config.url)
