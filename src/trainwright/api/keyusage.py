"""The X.509 KeyUsage extension of the certificates we issue, as the arguments of `cryptography.x509.KeyUsage`.

Data and not an object, because this room imports no cryptography: it costs 8 MB that most processes never need.
"""

from __future__ import annotations


def key_usage(*, signs: bool) -> dict[str, bool]:
    """For an authority that signs certificates, or for a server."""
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
