"""Where keys for S3 come from, in which order, and when they are renewed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from initializers.fileserver import Answer, FileServer, Request, file_server
from trainwright.clock import VirtualClock
from trainwright.initializers.errors import Misconfigured, NotPermitted
from trainwright.initializers.http import Http
from trainwright.initializers.s3.credentials import Credentials
from trainwright.initializers.settings import Variables

NOW = 1_700_000_000.0
OWN = {"ACCESS_KEY_ID": "own", "SECRET_ACCESS_KEY": "s"}
AWS = {"AWS_ACCESS_KEY_ID": "aws", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    async with Http() as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as files:
        yield files


def keys_in(name: str, seconds: float) -> Answer:
    expires = datetime.fromtimestamp(NOW + seconds, UTC).isoformat().replace("+00:00", "Z")
    found = {"AccessKeyId": name, "SecretAccessKey": "s", "Token": "t", "Expiration": expires}
    return Answer(200, {}, json.dumps(found).encode())


def credentials(
    http: Http, variables: dict[str, str], *, clock: VirtualClock | None = None, is_aws: bool = False
) -> Credentials:
    return Credentials(Variables(variables), http, region="eu-west-1", is_aws=is_aws, clock=clock or VirtualClock(NOW))


async def key_id(found: Credentials) -> str | None:
    keys = await found.keys()
    return keys.access_key_id if keys else None


async def test_the_reference_s_variables_come_first(http: Http, tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = file\naws_secret_access_key = s%\n[other]\n"
        "aws_access_key_id = other\naws_secret_access_key = s\n[half]\naws_access_key_id = half\n"
    )
    home = {"HOME": str(tmp_path)}
    assert await key_id(credentials(http, OWN | AWS | home)) == "own"
    assert await key_id(credentials(http, AWS | home)) == "aws"
    assert await key_id(credentials(http, home)) == "file"
    assert await key_id(credentials(http, {"AWS_PROFILE": "other"} | home)) == "other"
    assert await key_id(credentials(http, {"AWS_PROFILE": "half"} | home)) is None
    assert await key_id(credentials(http, {})) is None


async def test_a_credentials_file_that_cannot_be_read_is_said(http: Http, tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    path.write_text("not an ini file\n")
    with pytest.raises(Misconfigured, match="cannot be read"):
        await credentials(http, {"AWS_SHARED_CREDENTIALS_FILE": str(path)}).keys()


async def test_a_container_is_given_keys_by_its_endpoint(http: Http, server: FileServer, tmp_path: Path) -> None:
    """As EKS Pod Identity does it: an address, and a file with the token that it wants to see."""
    token = tmp_path / "token"
    token.write_text("right\n")

    def answer(request: Request) -> Answer:
        return keys_in("container", 3600) if request.headers.get("Authorization") == "right" else Answer(403)

    server.routes.append(answer)
    where = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/v1/credentials"}
    found = credentials(http, where | {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token)})
    assert await key_id(found) == "container"
    with pytest.raises(NotPermitted, match=r"no keys were given for it .status 403"):
        await credentials(http, where | {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "wrong"}).keys()
    server.routes[:] = [lambda request: Answer(200, {}, b"[]")]
    with pytest.raises(NotPermitted, match="does not answer with keys"):
        await credentials(http, where).keys()


async def test_an_instance_is_given_keys_by_its_metadata(http: Http, server: FileServer) -> None:
    def answer(request: Request) -> Answer:
        if request.path == "/latest/api/token":
            return Answer(200, {}, b"session") if request.method == "PUT" else Answer(405)
        if request.headers.get("X-aws-ec2-metadata-token") != "session":
            return Answer(401)
        is_list = request.path.endswith("/security-credentials/")
        return Answer(200, {}, b"role") if is_list else keys_in("instance", 3600)

    server.routes.append(answer)
    where = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": server.url}
    assert await key_id(credentials(http, where, is_aws=True)) == "instance"
    server.forget()
    assert await key_id(credentials(http, where | {"AWS_EC2_METADATA_DISABLED": "true"}, is_aws=True)) is None
    assert await key_id(credentials(http, where)) is None  # a server of one's own has no instances
    assert not server.requests
    server.routes[:] = [lambda request: Answer(404)]
    assert await key_id(credentials(http, where, is_aws=True)) is None


async def test_temporary_keys_are_renewed_before_they_end(http: Http, server: FileServer) -> None:
    answers = [keys_in("first", 3600), keys_in("second", 7200)]
    server.routes.append(lambda request: answers.pop(0))
    clock = VirtualClock(NOW)
    found = credentials(http, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/"}, clock=clock)
    seen = []
    for seconds in (0, 3000, 301, 1):
        await clock.advance(seconds)
        seen.append(await key_id(found))
    assert seen == ["first", "first", "second", "second"]


async def test_a_role_needs_keys_to_be_taken_with(http: Http) -> None:
    with pytest.raises(NotPermitted, match="there are no keys to take the role with"):
        await credentials(http, {"ROLE_ARN": "arn:role"}).keys()
    with pytest.raises(Misconfigured, match="without a role"):
        await credentials(http, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}).keys()
