"""Calls of webhooks: an AdmissionReview over HTTPS, and the interpretation of its answer."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import logging
import ssl
from collections.abc import Callable
from typing import Any

from trainwright.embedded.apiserver.admission.matching import Webhook
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.http.asking import Asker
from trainwright.http.pool import BadAddress
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)
MAX_ANSWER = 16 * 2**20
ServiceResolver = Callable[[str, str, int], tuple[str, int] | None]
"""Namespace, name and port of a service → host and port to connect to, None if unknown. There is no proxy."""


class WebhookFailed(Exception):
    """A call that failed or an answer that is malformed. The failure policy decides what follows."""


class WebhookCaller:
    def __init__(self, resolve: ServiceResolver | None) -> None:
        self._resolve = resolve
        self._asker = Asker()
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        self._asker.close()

    async def call(self, webhook: Webhook, request: Json) -> list[Json]:
        """The JSON patch of the webhook's answer, which may be empty.

        Raises `StatusError` if the webhook refuses, `WebhookFailed` if the call fails.
        """
        version = next((v for v in webhook.versions if v in ("v1", "v1beta1")), "")
        if not version:
            raise WebhookFailed("does not accept known AdmissionReview versions (v1, v1beta1)")
        review = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
        answer = await self._post(webhook, review)
        return self._interpret(webhook, request, version, answer)

    def _target(self, webhook: Webhook) -> tuple[str, str | None]:
        """The URL and, for a service, the name that its certificate must have."""
        config = webhook.client_config
        if config.get("url"):
            return str(config["url"]), None
        service = config.get("service") or {}
        namespace, name = service.get("namespace", ""), service.get("name", "")
        port = int(service.get("port") or 443)
        found = self._resolve(namespace, name, port) if self._resolve is not None else None
        if found is None:
            raise WebhookFailed(
                f'service "{name}" in namespace "{namespace}" has no known address: this server resolves only'
                " services it was told about; use clientConfig.url"
            )
        path = service.get("path") or "/"
        return f"https://{found[0]}:{found[1]}{path}", f"{name}.{namespace}.svc"

    def _context(self, bundle: str) -> ssl.SSLContext:
        key = hashlib.sha256(bundle.encode()).hexdigest()
        context = self._contexts.get(key)
        if context is None:
            try:
                pem = base64.b64decode(bundle).decode() if bundle else None
                context = ssl.create_default_context(cadata=pem)
            except (ValueError, binascii.Error, ssl.SSLError) as error:
                raise WebhookFailed(f"unable to load root certificates: {error}") from None
            self._contexts[key] = context
        return context

    async def _post(self, webhook: Webhook, review: Json) -> Any:
        url, server_name = self._target(webhook)
        context = self._context(webhook.client_config.get("caBundle") or "")
        separator = "&" if "?" in url else "?"
        shown = f"{url}{separator}timeout={int(webhook.seconds)}s"
        try:
            async with asyncio.timeout(webhook.seconds):
                asked = await self._asker.ask(
                    "POST",
                    shown,
                    {"Content-Type": "application/json", "Accept": "application/json, */*"},
                    json.dumps(review).encode(),
                    context=context,
                    server_name=server_name,
                    seconds=webhook.seconds,
                )
                with asked as reply:
                    body = await reply.some(MAX_ANSWER, webhook.seconds)
            if reply.status != 200:
                text = body[:512].decode(errors="replace").strip()
                raise WebhookFailed(f"an error on the server ({text!r}) has prevented the request from succeeding")
        except TimeoutError:
            raise WebhookFailed(f'failed to call webhook: Post "{shown}": context deadline exceeded') from None
        except (BadAddress, OSError) as error:
            raise WebhookFailed(f'failed to call webhook: Post "{shown}": {error}') from None
        try:
            return json.loads(body)
        except ValueError:
            raise WebhookFailed("the answer is not JSON") from None

    def _interpret(self, webhook: Webhook, request: Json, version: str, answer: Any) -> list[Json]:
        if not isinstance(answer, dict) or not isinstance(answer.get("response"), dict):
            raise WebhookFailed("webhook response was absent")
        if answer.get("kind") != "AdmissionReview" or answer.get("apiVersion") != f"admission.k8s.io/{version}":
            raise WebhookFailed(
                f"expected webhook response of admission.k8s.io/{version}, Kind=AdmissionReview, got"
                f" {answer.get('apiVersion')}, Kind={answer.get('kind')}"
            )
        response = answer["response"]
        if response.get("uid") != request["uid"]:
            raise WebhookFailed(f'expected response.uid="{request["uid"]}", got "{response.get("uid", "")}"')
        warnings = response.get("warnings")
        if isinstance(warnings, list):
            warn(str(text)[:256] for text in warnings)
        if response.get("allowed") is not True:
            raise denial(webhook.name, response.get("status") or response.get("result") or {})
        patch = response.get("patch")
        if not patch:
            return []
        if response.get("patchType") != "JSONPatch":
            raise WebhookFailed(
                f'webhook returned response.patchType "{response.get("patchType")}", only JSONPatch is known'
            )
        try:
            operations = json.loads(base64.b64decode(patch))
        except (ValueError, binascii.Error):
            raise WebhookFailed("the patch in the answer is not base64 of JSON") from None
        return operations if isinstance(operations, list) else []


def denial(name: str, status: Json) -> StatusError:
    """The refusal: the webhook's message after its name."""
    prefix = f'admission webhook "{name}" denied the request'
    if status.get("message"):
        text = f"{prefix}: {status['message']}"
    elif status.get("reason"):
        text = f"{prefix}: {status['reason']}"
    else:
        text = f"{prefix} without explanation"
    code = status.get("code")
    code = code if isinstance(code, int) and 400 <= code < 600 else 400
    details = status.get("details") if isinstance(status.get("details"), dict) else None
    return StatusError(code, text, reason=str(status.get("reason") or ""), details=details)
