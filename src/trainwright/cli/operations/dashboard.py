"""`trainwright dashboard`: the live page for a cluster, as its Deployment runs it.

It has no rights of its own: what a viewer sees is what the viewer's token may read. The token comes from the form of
the page, or in the Authorization header from a proxy in front of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trainwright.cli.failure import Failure
from trainwright.client import kubeconfig
from trainwright.client.credentials import StaticCredentials
from trainwright.client.errors import ConfigError
from trainwright.client.kubeconfig import Connection
from trainwright.dashboard.serve import Page, cluster_page


def dashboard(
    config: Path | None,
    context: str | None,
    host: str,
    port: int,
    allowed_host: Sequence[str],
    allow_changes: bool,
    name: str,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> int:
    connection = _connection(config, context)
    page = cluster_page(
        (host, port),
        lambda: connection,
        hosts=allowed_host,
        may_change=allow_changes,
        name=name or connection.context or "the cluster",
        tls=_tls(tls_cert, tls_key),
    )
    return asyncio.run(_serve(page))


async def _serve(page: Page) -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        async with page:
            print(f"The page listens on port {page.port}", flush=True)
            await stopped.wait()
    except OSError as error:
        raise Failure(f"the page cannot listen: {error.strerror}") from error
    return 0


def _connection(config: Path | None, context: str | None) -> Connection:
    """The API server, without any credentials of our own."""
    try:
        if config is None and context is None:
            environ = os.environ
            found = kubeconfig.in_cluster(
                host=environ.get("KUBERNETES_SERVICE_HOST"), port=environ.get("KUBERNETES_SERVICE_PORT")
            )
        else:
            found = kubeconfig.load_merged([config or Path.home() / ".kube" / "config"], context=context)
    except ConfigError as error:
        raise Failure(f"{error}; give --kubeconfig outside of a cluster") from error
    return msgspec.structs.replace(found, credentials=StaticCredentials())


def _tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Failure("--tls-cert and --tls-key belong together", 2)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise Failure(f"the certificate {certificate} cannot be used: {error}") from error
    return context
