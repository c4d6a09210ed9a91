"""The X.509 KeyUsage extension of the certificates we issue, as the arguments of `cryptography.x509.KeyUsage`.

It is data because this package does not import cryptography, which costs 8 MB that most processes do not need.
"""

from __future__ import annotations


def key_usage(*, signs: bool) -> dict[str, bool]:
    """The usage of a certificate authority (`signs`), or of a server."""
    return {
        "digital_signature": True,
        "content_commitment": False,
        "key_encipherment": not signs,
        "data_encipherment": False,
        "key_agreement": False,
        "key_cert_sign": signs,
        "crl_sign": signs,
        "encipher_only": False,
        "decipher_only": False,
    }
