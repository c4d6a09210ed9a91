"""HTTP servers of the operator: where they listen, and TLS whose certificate can change under running connections."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Self

from trainwright.api.configuration import ConfigurationError, TLSConfig
from trainwright.client.tls import load_chain
from trainwright.http import server as http
from trainwright.http.application import Application

log = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 5.0

# Go's names for the suites of TLS 1.2 that are worth offering; those of 1.3 cannot be chosen.
CIPHERS = {
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}


class ServingTLS:
    """One context for all servers. `load` puts a new certificate in; handshakes from then on use it."""

    def __init__(self, config: TLSConfig) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = (
            ssl.TLSVersion.TLSv1_2 if config.min_version == "1.2" or config.cipher_suites else ssl.TLSVersion.TLSv1_3
        )
        self.context.set_alpn_protocols(["http/1.1"])
        if any(proto != "http/1.1" for proto in config.next_protos):
            log.warning("tls.nextProtos: only http/1.1 is spoken; the others are not offered")
        known = [CIPHERS[name] for name in config.cipher_suites if name in CIPHERS]
        unknown = [name for name in config.cipher_suites if name not in CIPHERS and not name.startswith("TLS_AES_")]
        if unknown:
            log.warning("tls.cipherSuites: %s are unknown or insecure and not offered", ", ".join(unknown))
        if known:
            self.context.set_ciphers(":".join(known))
        self._loaded: tuple[bytes, bytes] | None = None
        self._ready = asyncio.Event()

    async def wait_ready(self) -> None:
        """Until there is a certificate."""
        await self._ready.wait()

    @property
    def is_ready(self) -> bool:
        return self._loaded is not None

    def load(self, certificate: bytes, key: bytes) -> bool:
        """Serves with this pair from now on; False when it is the one in use."""
        if self._loaded == (certificate, key):
            return False
        load_chain(self.context, certificate, key)
        self._loaded = (certificate, key)
        self._ready.set()
        return True


class Server(http.Server):
    """An application on one address: `async with Server(app, ":9443", tls):`. Port 0 takes a free one.

    A socket in place of the address is one that is bound already, and the server's from then on.
    """

    def __init__(self, app: Application, address: str | socket.socket, tls: ServingTLS | None = None) -> None:
        where = split_address(address) if isinstance(address, str) else address
        super().__init__(app, where, tls.context if tls else None, shutdown_seconds=SHUTDOWN_SECONDS)
        self._address = where

    async def __aenter__(self) -> Self:
        try:
            return await super().__aenter__()
        except OSError as error:
            host, port = self._address if isinstance(self._address, tuple) else self._address.getsockname()[:2]
            raise ConfigurationError(f"cannot listen on {host or '*'}:{port}: {error.strerror}") from error


def split_address(address: str) -> tuple[str, int]:
    """`:8443`, `127.0.0.1:8443`, `[::1]:8443`; an empty host means all interfaces."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError(f"{address!r} is not an address; write HOST:PORT or :PORT")
    return host.strip("[]"), int(port)
