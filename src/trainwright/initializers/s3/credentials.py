"""Who we are to S3: keys from the reference's variables, or from where AWS's own tools find them.

In this order: ACCESS_KEY_ID and SECRET_ACCESS_KEY; AWS_ACCESS_KEY_ID and its fellows; a token file of the service
account (AWS_WEB_IDENTITY_TOKEN_FILE, as EKS mounts it); the shared credentials file; the container's endpoint (EKS
Pod Identity, ECS); the instance's metadata, where S3 is AWS's own. With ROLE_ARN set, the keys found are exchanged
for the role's. Where there are none, requests are not signed, which public buckets allow. Temporary keys are
renewed before they end.
"""

from __future__ import annotations

import asyncio
import configparser
import json
from datetime import datetime
from pathlib import Path

from trainwright.clock import Clock
from trainwright.initializers.errors import Misconfigured, NotPermitted, Transient
from trainwright.initializers.http import Http, Refused, whole
from trainwright.initializers.names import printable
from trainwright.initializers.s3.answers import fault, parse
from trainwright.initializers.s3.signing import Keys, query_text, sign
from trainwright.initializers.settings import Variables

RENEWED_BEFORE = 300.0
_SESSION = "trainwright-initializer"
_LIMIT = 2**20
_CONTAINER_HOST = "http://169.254.170.2"
_INSTANCE_HOST = "http://169.254.169.254"
_INSTANCE_SECONDS = 2.0  # it is on the same machine, or it is not there


class Credentials:
    """Keys that are found when they are first asked for, and renewed while they are needed."""

    def __init__(self, variables: Variables, http: Http, *, region: str, is_aws: bool, clock: Clock) -> None:
        self._variables = variables
        self._http = http
        self._region = region
        self._is_aws = is_aws
        self._clock = clock
        self._keys: Keys | None = None
        self._looked = False

    async def keys(self) -> Keys | None:
        """The keys that are good now; None when there are none anywhere."""
        ends = self._keys.expires if self._keys else None
        if not self._looked or (ends is not None and ends - self._clock.wall() < RENEWED_BEFORE):
            self._keys = await self._find()
            self._looked = True
        return self._keys

    async def _find(self) -> Keys | None:
        get = self._variables.get
        role, token_file = get("ROLE_ARN"), get("AWS_WEB_IDENTITY_TOKEN_FILE")
        keys = self._static("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN") or self._static(
            "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
        )
        if keys is None and token_file:
            first = get("AWS_ROLE_ARN") or role
            if not first:
                raise Misconfigured("AWS_WEB_IDENTITY_TOKEN_FILE is set without a role: set AWS_ROLE_ARN or ROLE_ARN")
            keys = await self._from_web_identity(first, Path(token_file))
            role = None if role == first else role
        if keys is None:
            keys = self._from_file() or await self._from_container()
        if keys is None and self._is_aws:
            keys = await self._from_instance()
        if role is None:
            return keys
        if keys is None:
            raise NotPermitted(f"ROLE_ARN is {printable(role)}, and there are no keys to take the role with")
        return await self._assume(role, keys)

    def _static(self, key: str, secret: str, token: str) -> Keys | None:
        get = self._variables.get
        key_id, value = get(key), get(secret)
        if key_id and value:
            return Keys(key_id, value, get(token))
        if key_id or value:
            raise Misconfigured(f"{key if key_id else secret} is set without {secret if key_id else key}: set both")
        return None

    def _from_file(self) -> Keys | None:
        """A profile with keys of the shared credentials file."""
        get = self._variables.get
        home, named = get("HOME"), get("AWS_SHARED_CREDENTIALS_FILE")
        if not named and not home:
            return None
        path = Path(named) if named else Path(home or "") / ".aws" / "credentials"
        profile = get("AWS_PROFILE") or "default"
        file = configparser.ConfigParser(interpolation=None)
        try:
            file.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError) as error:
            raise Misconfigured(f"{path} cannot be read: {printable(str(error))}") from error
        section = file[profile] if file.has_section(profile) else {}
        key_id, secret = section.get("aws_access_key_id"), section.get("aws_secret_access_key")
        return Keys(key_id, secret, section.get("aws_session_token")) if key_id and secret else None

    async def _from_container(self) -> Keys | None:
        get = self._variables.get
        relative, full = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        url = f"{_CONTAINER_HOST}{relative}" if relative else full
        if not url:
            return None
        token_file = get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        token = _text_of(Path(token_file)) if token_file else get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        return _from_json(await self._ask(url, {"Authorization": token} if token else {}), url)

    async def _from_instance(self) -> Keys | None:
        """The role of the virtual machine; None where there is no such machine or it has no role."""
        if (self._variables.get("AWS_EC2_METADATA_DISABLED") or "").lower() == "true":
            return None
        host = (self._variables.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _INSTANCE_HOST).rstrip("/")
        roles = f"{host}/latest/meta-data/iam/security-credentials/"
        lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
        try:
            async with asyncio.timeout(_INSTANCE_SECONDS):
                token = await self._once(f"{host}/latest/api/token", lifetime, method="PUT")
                header = {"X-aws-ec2-metadata-token": token.decode()}
                role = (await self._once(roles, header)).decode().strip()
                return _from_json(await self._once(f"{roles}{role}", header), host)
        except (TimeoutError, Transient, Refused):
            return None

    async def _from_web_identity(self, role: str, token_file: Path) -> Keys:
        query = {
            "Action": "AssumeRoleWithWebIdentity",
            "RoleArn": role,
            "RoleSessionName": self._variables.get("AWS_ROLE_SESSION_NAME") or _SESSION,
            "Version": "2011-06-15",
            "WebIdentityToken": _text_of(token_file),
        }
        return await self._sts(query, None, role)

    async def _assume(self, role: str, keys: Keys) -> Keys:
        query = {"Action": "AssumeRole", "RoleArn": role, "RoleSessionName": _SESSION, "Version": "2011-06-15"}
        return await self._sts(query, keys, role)

    async def _sts(self, query: dict[str, str], keys: Keys | None, role: str) -> Keys:
        suffix = "amazonaws.com.cn" if self._region.startswith("cn-") else "amazonaws.com"
        host = self._variables.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{self._region}.{suffix}"
        url = f"{host.rstrip('/')}/"
        form = query_text(query).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if keys:
            headers = sign(
                "POST", url, headers, keys, region=self._region, service="sts", now=self._clock.wall(), body=form
            )
        answer_body = await self._ask(url, headers, what=f"the role {printable(role)}", method="POST", body=form)
        try:
            answer = parse(answer_body)
            result = next(child for child in answer.children if child.name.endswith("Result"))
            found = next(result.all("Credentials"))
            expires = _time(found.value("Expiration"))
        except (ValueError, StopIteration):
            raise NotPermitted(f"{host} does not answer as an STS server does: see AWS_ENDPOINT_URL_STS") from None
        return Keys(found.value("AccessKeyId"), found.value("SecretAccessKey"), found.value("SessionToken"), expires)

    async def _ask(
        self, url: str, headers: dict[str, str], what: str = "", method: str = "GET", body: bytes | None = None
    ) -> bytes:
        try:
            return await self._once(url, headers, method, body)
        except Refused as refused:
            said = fault(refused.body)
            reason = printable(f"{said.code}: {said.message}" if said.code else f"status {refused.status}")
            raise NotPermitted(f"{what or printable(url)}: no keys were given for it ({reason})") from None

    async def _once(self, url: str, headers: dict[str, str], method: str = "GET", body: bytes | None = None) -> bytes:
        async with self._http.ask(url, private=headers, method=method, body=body, redirects=False) as response:
            return await whole(response, _LIMIT)


def _from_json(body: bytes, where: str) -> Keys:
    """Keys as the endpoints of containers and instances give them."""
    try:
        found = json.loads(body)
        return Keys(found["AccessKeyId"], found["SecretAccessKey"], found.get("Token"), _time(found.get("Expiration")))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotPermitted(f"{printable(where)} does not answer with keys") from None


def _time(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None


def _text_of(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"the token file {path} cannot be read: {printable(str(error))}") from error
