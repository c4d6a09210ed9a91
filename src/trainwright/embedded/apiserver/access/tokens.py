"""Service account tokens: signed by this server, bound to their account (and pod or secret), checked at every use.

A token is a JWT with HMAC-SHA256 and a key that never leaves the directory: only this server, through TokenReview, can
say whether it is good.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import uuid
from typing import TYPE_CHECKING, Any

from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

ISSUER = "https://kubernetes.default.svc.cluster.local"
AUDIENCE = ISSUER
DEFAULT_SECONDS = 3600
MIN_SECONDS, MAX_SECONDS = 600, 2**32


class TokenError(ValueError):
    """Not one of our tokens, or no longer good; the text says why."""


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class ServiceAccountTokens:
    def __init__(self, api: Api, key: bytes) -> None:
        self._api = api
        self._key = key
        self._head = _encode(b'{"alg":"HS256","typ":"JWT"}')

    def _sign(self, text: str) -> bytes:
        return hmac.new(self._key, text.encode(), hashlib.sha256).digest()

    def issue(self, account: Json, audiences: list[str], seconds: int, bound: Json | None) -> tuple[str, int]:
        """The token and when it ends (seconds since the epoch)."""
        now = int(self._api.clock.wall())
        meta = account["metadata"]
        kubernetes: Json = {
            "namespace": meta["namespace"],
            "serviceaccount": {"name": meta["name"], "uid": meta["uid"]},
        }
        if bound is not None:
            kubernetes[bound["kind"].lower()] = {"name": bound["name"], "uid": bound["uid"]}
        claims: Json = {
            "aud": audiences or [AUDIENCE],
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": kubernetes,
            "nbf": now,
            "sub": f"system:serviceaccount:{meta['namespace']}:{meta['name']}",
        }
        text = f"{self._head}.{_encode(json.dumps(claims, separators=(',', ':')).encode())}"
        return f"{text}.{_encode(self._sign(text))}", now + seconds

    def claims_of(self, token: str) -> Json:
        """The claims of a good token. Raises `TokenError`."""
        parts = token.split(".")
        if len(parts) != 3 or parts[0] != self._head:
            raise TokenError("not a token of this server")
        try:
            signature, body = _decode(parts[2]), _decode(parts[1])
        except ValueError:
            raise TokenError("not a token of this server") from None
        if not hmac.compare_digest(signature, self._sign(f"{parts[0]}.{parts[1]}")):
            raise TokenError("the signature is not ours")
        claims: Json = json.loads(body)
        now = self._api.clock.wall()
        if claims["exp"] <= now:
            raise TokenError("service account token has expired")
        if claims["nbf"] > now + 5:
            raise TokenError("service account token is not valid yet")
        self._check_bound(claims["kubernetes.io"])
        return claims

    def _check_bound(self, kubernetes: Json) -> None:
        """The account, and the object the token is bound to, must still be the ones it was issued for."""
        namespace = kubernetes["namespace"]
        for member, resource in (("serviceaccount", "serviceaccounts"), ("pod", "pods"), ("secret", "secrets")):
            reference = kubernetes.get(member)
            if reference is None:
                continue
            stored = self._api.state.get(Key(resource, namespace, reference["name"]))
            if stored is None or stored.uid != reference["uid"]:
                raise TokenError(f"the {member} of this service account token is gone")

    def user_of(self, token: str, audience: str | None = AUDIENCE) -> User:
        claims = self.claims_of(token)
        if audience is not None and audience not in claims["aud"]:
            raise TokenError("the token is for another audience")
        return user_from(claims)


def user_from(claims: Json) -> User:
    kubernetes: dict[str, Any] = claims["kubernetes.io"]
    namespace, account = kubernetes["namespace"], kubernetes["serviceaccount"]
    extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
    if "pod" in kubernetes:
        extra["authentication.kubernetes.io/pod-name"] = [kubernetes["pod"]["name"]]
        extra["authentication.kubernetes.io/pod-uid"] = [kubernetes["pod"]["uid"]]
    return User(
        name=f"system:serviceaccount:{namespace}:{account['name']}",
        uid=account["uid"],
        groups=("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"),
        extra=extra,
    )
