"""Service account tokens are good while their account and their pod exist, and only if this server signed them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import jwt
import pytest

from trainwright.embedded.apiserver.access.tokens import LEEWAY, ServiceAccountTokens, TokenError
from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.operations import deletion
from trainwright.embedded.apiserver.operations.deletion import Deletion
from trainwright.embedded.apiserver.storage.store import Key

KEY = b"k" * 32


async def account(core: Any) -> Any:
    return await core.create("serviceaccounts", {"metadata": {"name": "robot"}})


async def test_a_token_names_its_account_and_groups(core: Any) -> None:
    tokens = ServiceAccountTokens(core.api, KEY)
    made = await account(core)
    user = tokens.user_of(tokens.issue(made, [], 600, None)[0])
    assert user.name == "system:serviceaccount:default:robot"
    assert user.uid == made["metadata"]["uid"]
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")


async def test_a_token_expires(core: Any) -> None:
    tokens = ServiceAccountTokens(core.api, KEY)
    token, end = tokens.issue(await account(core), [], 600, None)
    assert end == core.clock.wall() + 600
    await core.clock.advance(599)
    tokens.claims_of(token)
    await core.clock.advance(1)
    with pytest.raises(TokenError, match="has expired"):
        tokens.claims_of(token)


async def test_a_token_ends_with_its_account_even_if_a_new_one_takes_the_name(core: Any) -> None:
    tokens = ServiceAccountTokens(core.api, KEY)
    token, _ = tokens.issue(await account(core), [], 600, None)
    key = Key("serviceaccounts", "default", "robot")
    await deletion.delete(core.api, Deletion(core.served("serviceaccounts"), key, SYSTEM))
    with pytest.raises(TokenError, match="the serviceaccount of this service account token is gone"):
        tokens.claims_of(token)
    await account(core)
    with pytest.raises(TokenError, match="is gone"):
        tokens.claims_of(token)


async def test_a_bound_token_needs_its_object(core: Any) -> None:
    tokens = ServiceAccountTokens(core.api, KEY)
    made = await account(core)
    secret = await core.create("secrets", {"metadata": {"name": "s"}})
    bound = {"kind": "Secret", "name": "s", "uid": secret["metadata"]["uid"]}
    assert tokens.claims_of(tokens.issue(made, [], 600, bound)[0])
    with pytest.raises(TokenError, match="the secret of this service account token is gone"):
        tokens.claims_of(tokens.issue(made, [], 600, {**bound, "uid": "other"})[0])


async def test_audiences_are_checked(core: Any) -> None:
    tokens = ServiceAccountTokens(core.api, KEY)
    token, _ = tokens.issue(await account(core), ["vault"], 600, None)
    with pytest.raises(TokenError, match="for another audience"):
        tokens.user_of(token)
    assert tokens.user_of(token, "vault").name == "system:serviceaccount:default:robot"


async def test_a_token_issued_before_the_clock_was_set_back_is_not_valid_yet(core: Any) -> None:
    tokens = ServiceAccountTokens(core.api, KEY)
    token, _ = tokens.issue(await account(core), [], 600, None)
    claims = {**tokens.claims_of(token), "nbf": core.clock.wall() + LEEWAY + 1}
    with pytest.raises(TokenError, match="not valid yet"):
        tokens.claims_of(jwt.encode(claims, KEY, "HS256"))


async def test_an_altered_token_is_refused(core: Any) -> None:
    tokens = ServiceAccountTokens(core.api, KEY)
    token, _ = tokens.issue(await account(core), [], 600, None)
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims["sub"] = "system:serviceaccount:kube-system:root"
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    for wrong in (
        f"{head}.{forged}.{signature}",
        f"{head}.{body}.",
        f"{head}.{body}",
        "x",
        f"{head}.{body}.ä",
        "a.b.c",
    ):
        with pytest.raises(TokenError):
            tokens.claims_of(wrong)
    with pytest.raises(TokenError, match="the signature is not ours"):
        ServiceAccountTokens(core.api, b"other" * 8).claims_of(token)


async def test_a_token_of_another_algorithm_is_refused_though_its_signature_holds(core: Any) -> None:
    """No `alg: none`, no other HMAC, and no public key taken for a secret."""
    tokens = ServiceAccountTokens(core.api, KEY)
    claims = tokens.claims_of(tokens.issue(await account(core), [], 600, None)[0])
    unsigned = jwt.encode(claims, "", "none")
    longer = jwt.encode(claims, KEY * 2, "HS512")
    head = base64.urlsafe_b64encode(b'{"alg":"RS256","typ":"JWT"}').decode().rstrip("=")
    body = unsigned.split(".")[1]
    mac = hmac.new(KEY, f"{head}.{body}".encode(), hashlib.sha256).digest()
    confused = f"{head}.{body}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
    for wrong in (unsigned, longer, confused):
        with pytest.raises(TokenError, match="not a token of this server"):
            tokens.claims_of(wrong)
    with pytest.raises(TokenError, match="not a token of this server"):
        ServiceAccountTokens(core.api, KEY * 2).claims_of(longer)


@pytest.mark.parametrize("missing", ["aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"])
async def test_a_token_without_one_of_its_claims_is_refused(core: Any, missing: str) -> None:
    tokens = ServiceAccountTokens(core.api, KEY)
    claims = dict(tokens.claims_of(tokens.issue(await account(core), [], 600, None)[0]))
    del claims[missing]
    with pytest.raises(TokenError, match="not a token of this server"):
        tokens.claims_of(jwt.encode(claims, KEY, "HS256"))


async def test_a_token_of_another_issuer_is_refused(core: Any) -> None:
    tokens = ServiceAccountTokens(core.api, KEY)
    claims = {**tokens.claims_of(tokens.issue(await account(core), [], 600, None)[0]), "iss": "https://elsewhere"}
    with pytest.raises(TokenError, match="not a token of this server"):
        tokens.claims_of(jwt.encode(claims, KEY, "HS256"))
