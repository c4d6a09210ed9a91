"""TLS contexts for connections to an API server: its CA, and our client certificate if there is one."""

from __future__ import annotations

import functools
import os
import ssl

from trainwright.client.errors import ConfigError


@functools.lru_cache(maxsize=8)
def client_context(
    *, ca: bytes | None, insecure: bool, certificate: bytes | None = None, key: bytes | None = None
) -> ssl.SSLContext:
    """A context that trusts `ca` (PEM; the system's roots when None) and presents `certificate` when asked.

    It takes milliseconds to make, and a command has several connections: those of the same identity share it.
    """
    try:
        context = ssl.create_default_context(cadata=ca.decode() if ca else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"the certificate authority's data is not PEM: {error}") from error
    # As Go does: an intermediate may be the trust anchor, and CAs without newer extensions are accepted.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate and key:
        load_chain(context, certificate, key)
    return context


def load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Loads a client certificate. `ssl` reads only files, so the pair is written to one that only we can read."""
    import tempfile  # which takes longer to import than all else here, and most credentials are tokens

    descriptor, path = tempfile.mkstemp(prefix="trainwright-", suffix=".pem")  # made 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
        context.load_cert_chain(path)
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"the client certificate and key do not fit together or are not PEM: {error}") from error
    finally:
        os.unlink(path)
