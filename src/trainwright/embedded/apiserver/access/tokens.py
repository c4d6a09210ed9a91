"""Service account tokens: signed by this server, bound to their account (and pod or secret), checked at every use.

A token is a JWT with HMAC-SHA256 and a key that never leaves the directory: only this server can check it, for itself
and for others through TokenReview. PyJWT signs and verifies; whether a token is still good depends on our clock and
our objects, and is decided here.
"""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING, Any

from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

ALGORITHM = "HS256"
ISSUER = "https://kubernetes.default.svc.cluster.local"
AUDIENCE = ISSUER
DEFAULT_SECONDS = 3600
MIN_SECONDS, MAX_SECONDS = 600, 2**32
LEEWAY = 5
"""Seconds by which the clock may have been set back since a token was issued."""


class TokenError(ValueError):
    """A token that this server did not issue or that is no longer good; the message says why."""


class ServiceAccountTokens:
    """Issues and checks tokens. PyJWT is loaded with the first one: it costs 9 MB, and many clusters never see one."""

    def __init__(self, api: Api, key: bytes) -> None:
        self._api = api
        self._key = key
        # Verifying takes 80 µs and always gives the same answer, so it is done once for each token in use.
        self._verified = functools.lru_cache(maxsize=1024)(self._verify)

    def issue(self, account: Json, audiences: list[str], seconds: int, bound: Json | None) -> tuple[str, int]:
        """The token, and when it expires (seconds since the epoch)."""
        import jwt

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
        return jwt.encode(claims, self._key, ALGORITHM), now + seconds

    def claims_of(self, token: str) -> Json:
        """The claims of a good token. Raises `TokenError`."""
        if token.count(".") != 2:
            raise TokenError("not a token of this server")
        claims = self._verified(token)
        now = self._api.clock.wall()
        if claims["exp"] <= now:
            raise TokenError("service account token has expired")
        if claims["nbf"] > now + LEEWAY:
            raise TokenError("service account token is not valid yet")
        self._check_bound(claims["kubernetes.io"])
        return claims

    def _verify(self, token: str) -> Json:
        """The claims of a token that this server signed, whenever that was."""
        import jwt

        try:
            return jwt.decode(
                token,
                self._key,
                algorithms=[ALGORITHM],
                issuer=ISSUER,
                options={
                    "require": ["aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"],
                    # PyJWT would ask the machine's clock; the server has its own. The caller knows the audience.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "verify_aud": False,
                },
            )
        except jwt.InvalidSignatureError:
            raise TokenError("the signature is not ours") from None
        except jwt.PyJWTError as error:
            raise TokenError(f"not a token of this server: {error}") from None

    def _check_bound(self, kubernetes: Json) -> None:
        """Check that the account, and the object the token is bound to, still exist with the UIDs of back then."""
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
