"""Keeps the certificate Secret good, serves with it, and has the API server trust it. Every replica does all three.

A controller like any other: woken by the Secret and by the two webhook configurations, it writes only what differs,
and bound to the version it read, so replicas that start together on an empty Secret agree on one CA.
`ca_certificate` is what children mount.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import SECRETS, Resource
from trainwright.client import STRATEGIC_MERGE_PATCH, AlreadyExists, Client, ConfigError, Invalid, NotFound
from trainwright.controlloop import After, Clock, Key, Outcome, Source, Watches
from trainwright.operator.certificates.material import Material, Policy, split_bundle
from trainwright.operator.certificates.process import Judgement, Question, judge_apart
from trainwright.operator.fieldmanager import FIELD_MANAGER
from trainwright.operator.serving.listening import ServingTLS

log = logging.getLogger(__name__)

CONTROLLER = "cert-rotator"
CHANGED_AT = "trainer.kubeflow.org/certificates-changed-at"
MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATING_NAME = "defaulter.trainer.kubeflow.org"
VALIDATING_NAME = "validator.trainer.kubeflow.org"
FILES = ("ca.crt", "ca.key", "tls.crt", "tls.key")
FILE_POLL_SECONDS = 10.0
JUDGE_SECONDS = 5.0
"""How long a stored certificate that the API server trusts is served before it is judged for the first time."""


class _Secret(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


class _ClientConfig(msgspec.Struct, frozen=True, rename="camel"):
    ca_bundle: str | None = None


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    client_config: _ClientConfig = _ClientConfig()


class _WebhookConfiguration(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    webhooks: list[_Webhook] | None = None


class Rotation:
    """Certificates that we manage ourselves, in one Secret of our own namespace."""

    def __init__(
        self,
        client: Client,
        tls: ServingTLS,
        *,
        namespace: str,
        secret: str,
        policy: Policy,
        clock: Clock,
        now: Callable[[], datetime] | None = None,
        on_change: Callable[[], None] = lambda: None,
        judge: Callable[[Question], Awaitable[Judgement]] = judge_apart,
    ) -> None:
        self._client = client
        self._judge = judge
        self._tls = tls
        self._key = Key(namespace, secret)
        self._policy = policy
        self._clock = clock
        self._now = now or (lambda: datetime.fromtimestamp(client.server_time.now(), UTC))
        self._on_change = on_change
        self._secrets: Source[_Secret] = Source(
            SECRETS, _Secret, namespace=namespace, field_selector=f"metadata.name={secret}"
        )
        self._configurations: list[Source[_WebhookConfiguration]] = [
            Source(resource, _WebhookConfiguration, field_selector=f"metadata.name={name}")
            for resource, name in ((MUTATING, MUTATING_NAME), (VALIDATING, VALIDATING_NAME))
        ]
        self._ready = False
        self.ca_certificate = ""

    @property
    def watches(self) -> list[Watches]:
        def same_key(_: object) -> list[Key]:
            return [self._key]

        sources: list[Source[Any]] = [self._secrets, *self._configurations]
        return [Watches(source, same_key) for source in sources]

    @property
    def key(self) -> Key:
        return self._key

    @property
    def is_ready(self) -> bool:
        """We serve with a certificate that the API server has been told to trust."""
        return self._ready and self._tls.is_ready

    async def reconcile(self, key: Key) -> Outcome:
        secret = self._secrets.store.get(self._key)
        stored = material_of(secret) if secret is not None else None
        now = self._now()
        injected = stored is not None and all(self._is_injected(source, stored) for source in self._configurations)
        if stored is not None and injected and not self._ready and self._serve(stored):
            self._ready = True
            return After(JUDGE_SECONDS)  # an operator that starts again has more urgent work than to judge it
        judgement = await self._judge(Question(stored, self._policy, now.timestamp(), injected))
        if judgement.wanted is not None:
            await self._store(secret, judgement.wanted)
            return After(1.0)  # the watch brings what was stored, by us or by another replica
        assert stored is not None
        self._serve(stored)
        for source in self._configurations:
            await self._inject(source, stored)
        self._ready = True
        return After(judgement.again)

    def _serve(self, material: Material) -> bool:
        """Serves with it, and gives its CAs to children; False when it is no pair."""
        try:
            if self._tls.load(material.certificate, material.key):
                log.info("serving with a new certificate")
        except ConfigError as error:
            log.warning("the Secret %s: %s", self._key, error)
            return False
        bundle = material.bundle.decode()
        if bundle != self.ca_certificate:
            self.ca_certificate = bundle
            self._on_change()
        return True

    async def _store(self, secret: _Secret | None, material: Material) -> None:
        contents = (material.bundle, material.authority_key, material.certificate, material.key)
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": self._key.name,
                "namespace": self._key.namespace,
                "annotations": {CHANGED_AT: str(material.changed_at)},
            },
            "data": {name: base64.b64encode(content).decode() for name, content in zip(FILES, contents, strict=True)},
        }
        if secret is None:
            try:
                await self._client.create(SECRETS, body, self._key.namespace, field_manager=FIELD_MANAGER, decode=bytes)
            except AlreadyExists:
                pass
            return
        body["metadata"]["resourceVersion"] = secret.metadata.resource_version
        await self._client.patch(
            SECRETS,
            body,
            name=self._key.name,
            namespace=self._key.namespace,
            field_manager=FIELD_MANAGER,
            decode=bytes,
        )

    def _is_injected(self, source: Source[_WebhookConfiguration], material: Material) -> bool:
        wanted = base64.b64encode(material.bundle).decode()
        return all(
            webhook.client_config.ca_bundle == wanted for found in source.store for webhook in found.webhooks or ()
        )

    async def _inject(self, source: Source[_WebhookConfiguration], material: Material) -> None:
        """Has the API server trust our CAs. Configurations that are not installed are no concern of ours."""
        wanted = base64.b64encode(material.bundle).decode()
        for found in source.store:
            stale = [hook.name for hook in found.webhooks or () if hook.client_config.ca_bundle != wanted]
            if not stale:
                continue
            patch = {
                "metadata": {"resourceVersion": found.metadata.resource_version},
                "webhooks": [{"name": name, "clientConfig": {"caBundle": wanted}} for name in stale],
            }
            try:
                await self._client.patch(
                    source.resource,
                    patch,
                    name=found.metadata.name,
                    content_type=STRATEGIC_MERGE_PATCH,
                    field_manager=FIELD_MANAGER,
                    decode=bytes,
                )
            except (NotFound, Invalid) as error:
                log.warning("%s %s: %s", source.resource.kind, found.metadata.name, error)


def material_of(secret: _Secret) -> Material | None:
    """What the Secret holds, if it holds all four files."""
    data = secret.data or {}
    try:
        ca, ca_key, certificate, key = (base64.b64decode(data[name]) for name in FILES)
        changed_at = float(secret.metadata.annotation(CHANGED_AT) or 0.0)
    except (KeyError, ValueError, binascii.Error):
        return None
    return Material(split_bundle(ca), ca_key, certificate, key, changed_at)


class CertificateFiles:
    """Certificates that somebody else manages (cert-manager), mounted as files; read again when they change."""

    def __init__(
        self, tls: ServingTLS, directory: Path, clock: Clock, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self._tls = tls
        self._directory = directory
        self._clock = clock
        self._on_change = on_change
        self._told = ""
        self.ca_certificate = ""

    @property
    def is_ready(self) -> bool:
        return self._tls.is_ready

    async def run(self) -> None:
        while True:
            self.read()
            await self._clock.sleep(FILE_POLL_SECONDS if self.is_ready else 1.0)

    def read(self) -> None:
        try:
            certificate = (self._directory / "tls.crt").read_bytes()
            key = (self._directory / "tls.key").read_bytes()
            if self._tls.load(certificate, key):
                log.info("serving with a new certificate from %s", self._directory)
        except (OSError, ConfigError) as error:
            self._tell(
                f"{self._directory}: {error}"
            )  # half written, or not mounted yet: the next look may find it whole
            return
        authority = self._directory / "ca.crt"
        text = authority.read_text() if authority.exists() else ""
        if text != self.ca_certificate:
            self.ca_certificate = text
            self._on_change()

    def _tell(self, what: str) -> None:
        if what != self._told:
            log.warning("certificate: %s", what)
            self._told = what
