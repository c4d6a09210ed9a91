"""`s3://` against moto's S3, IAM and STS servers, which check signatures and policies.

`make test-initializers` has moto; `make test` leaves this out.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from initializers.fileserver import Answer, FileServer, Request, file_server, noise
from initializers.runs import fetch, run, tree
from trainwright.initializers.errors import (
    Changed,
    Damaged,
    Misconfigured,
    Missing,
    NotPermitted,
    Unreachable,
    UnsafeName,
)

boto3 = pytest.importorskip("boto3")
botocore = pytest.importorskip("botocore.config")
moto_server = pytest.importorskip("moto.server")

MIB = 2**20
ALLOW_DATA = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:ListBucket", "sts:AssumeRole"],
            "Resource": ["arn:aws:s3:::data", "arn:aws:s3:::data/*", "arn:aws:iam::123456789012:role/reader"],
        }
    ],
}
TRUST_SOMEBODY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::123456789012:user/somebody"},
            "Action": "sts:AssumeRole",
        }
    ],
}
ROLE = "arn:aws:iam::123456789012:role/reader"


class Cloud:
    """moto, with a bucket `data`, and keys of a user who may read that one."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.s3 = self.client("s3")
        self.s3.create_bucket(Bucket="data")
        iam = self.client("iam")
        iam.create_user(UserName="somebody")
        iam.put_user_policy(UserName="somebody", PolicyName="p", PolicyDocument=json.dumps(ALLOW_DATA))
        key = iam.create_access_key(UserName="somebody")["AccessKey"]
        self.keys = {"ACCESS_KEY_ID": key["AccessKeyId"], "SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps(TRUST_SOMEBODY))
        iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=json.dumps(ALLOW_DATA))
        self.variables = {"ENDPOINT": url, **self.keys}

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=botocore.Config(request_checksum_calculation="when_required"),
        )

    def put(self, **objects: bytes) -> None:
        for key, content in objects.items():
            self.put_object(key, content)

    def put_object(self, key: str, content: bytes, **how: str) -> None:
        self.s3.put_object(Bucket="data", Key=key, Body=content, **how)

    def guard(self) -> None:
        """From now on every request has to be signed by somebody who may."""
        ask(f"{self.url}/moto-api/reset-auth", b"0")


def ask(url: str, body: bytes | None = None) -> None:
    asked = urllib.request.Request(url, data=body, method="POST", headers={"Content-Type": "text/plain"})  # noqa: S310
    urllib.request.urlopen(asked).close()  # noqa: S310


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    server = moto_server.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def cloud(moto: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "3")  # listings come in pages
    ask(f"{moto}/moto-api/reset-auth", b"1000000")
    ask(f"{moto}/moto-api/reset")
    yield Cloud(moto)
    ask(f"{moto}/moto-api/reset-auth", b"1000000")


@pytest.fixture
def between(cloud: Cloud) -> Iterator[FileServer]:
    """A proxy before the cloud; routes put before its own one may answer instead of it, or damage what comes back."""

    def forward(request: Request) -> Answer:
        address = f"{cloud.url}{quote(request.path)}?{request.query}"
        asked = urllib.request.Request(address, headers=dict(request.headers), method=request.method)  # noqa: S310
        try:
            with urllib.request.urlopen(asked) as response:  # noqa: S310
                body = response.read()
                kept = {name: value for name, value in response.headers.items() if name.lower() not in SKIPPED}
                return Answer(response.status, kept, damage(request, body))
        except urllib.error.HTTPError as error:
            return Answer(error.code, {}, error.read())

    SKIPPED = ("content-length", "connection", "date", "server")

    def damage(request: Request, body: bytes) -> bytes:
        return body[:-1] + b"?" if request.path.startswith("/data/damaged") else body

    with file_server() as server:
        server.routes.append(forward)
        yield server


async def test_a_directory_of_a_bucket_arrives_as_it_is(cloud: Cloud, target: Path) -> None:
    """Signed, in pages, with names that need encoding; placeholders of directories and other prefixes are left out."""
    cloud.put(
        **{
            "set/a.csv": b"a",
            "set/": b"",
            "set/deep/er/b.bin": noise(3 * MIB),
            "set/empty": b"",
            "set/with space+plus%25~ä (1).txt": b"odd",
            "set//double": b"slash",
            "set2/other": b"not this",
        }
    )
    cloud.guard()
    await fetch("s3://data/set", target, **cloud.variables)
    assert tree(target) == {
        "a.csv": b"a",
        "deep/er/b.bin": noise(3 * MIB),
        "double": b"slash",
        "empty": b"",
        "with space+plus%25~ä (1).txt": b"odd",
    }
    assert "nothing had to be fetched" in await fetch("s3://data/set/", target, **cloud.variables)


async def test_one_object_a_whole_bucket_and_the_beginning_of_names(cloud: Cloud, target: Path) -> None:
    cloud.put(**{"train-0.bin": b"0", "train-1.bin": b"1", "x/y": b"2"})
    await fetch("s3://data/x/y", target / "one", **cloud.variables)
    assert tree(target / "one") == {"y": b"2"}
    await fetch("s3://data", target / "all", **cloud.variables)
    assert tree(target / "all") == {"train-0.bin": b"0", "train-1.bin": b"1", "x/y": b"2"}
    await fetch("s3://data/train-", target / "some", **cloud.variables)
    assert tree(target / "some") == {"0.bin": b"0", "1.bin": b"1"}


async def test_ignore_patterns_match_the_whole_key(cloud: Cloud, target: Path) -> None:
    cloud.put(**{"m/config.json": b"1", "m/old/model.bin": b"2", "m/model.bin": b"3", "m/model.safetensors": b"4"})
    await fetch("s3://data/m", target, step="model", IGNORE_PATTERNS="*.bin, m/config*", **cloud.variables)
    assert tree(target) == {"model.safetensors": b"4"}
    said = await fetch("s3://data/m", target / "none", IGNORE_PATTERNS="*", **cloud.variables)
    assert "every file is left out by its patterns" in said


async def test_a_large_object_comes_in_ranges_and_a_multipart_one_without_a_checksum(
    cloud: Cloud, target: Path
) -> None:
    content = noise(66 * MIB)
    cloud.put_object("large", content, ChecksumAlgorithm="SHA256")
    upload = cloud.s3.create_multipart_upload(Bucket="data", Key="parts")["UploadId"]
    parts = []
    for number, part in enumerate((content[: 5 * MIB], content[5 * MIB : 6 * MIB]), start=1):
        answer = cloud.s3.upload_part(Bucket="data", Key="parts", UploadId=upload, PartNumber=number, Body=part)
        parts.append({"ETag": answer["ETag"], "PartNumber": number})
    cloud.s3.complete_multipart_upload(Bucket="data", Key="parts", UploadId=upload, MultipartUpload={"Parts": parts})
    await fetch("s3://data", target, **cloud.variables)
    assert tree(target) == {"large": content, "parts": content[: 6 * MIB]}


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("s3://data/nothing", "no object of that name and none below it"),
        ("s3://nothing/x", "no such bucket or object .NoSuchBucket"),
    ],
)
async def test_what_is_not_there_is_said(missing: str, sentence: str, cloud: Cloud, target: Path) -> None:
    with pytest.raises(Missing, match=sentence):
        await fetch(missing, target, **cloud.variables)


@pytest.mark.parametrize(
    ("uri", "variables", "sentence"),
    [
        ("s3://data/f", {"SECRET_ACCESS_KEY": "wrong"}, "keys are not accepted .SignatureDoesNotMatch"),
        ("s3://data/f", {"ACCESS_KEY_ID": "AKIAUNKNOWN"}, "keys are not accepted .InvalidAccessKeyId"),
        ("s3://other/f", {}, "the keys have no right to it .AccessDenied.* let them list and read it"),
    ],
)
async def test_missing_rights_say_whose_they_are(
    uri: str, variables: dict[str, str], sentence: str, cloud: Cloud, target: Path
) -> None:
    cloud.s3.create_bucket(Bucket="other")
    cloud.put(f=b"content")
    cloud.guard()
    with pytest.raises(NotPermitted, match=sentence):
        await fetch(uri, target, **{**cloud.variables, **variables})


async def test_without_keys_a_public_bucket_is_read_and_another_one_says_what_is_missing(
    cloud: Cloud, target: Path
) -> None:
    cloud.s3.create_bucket(Bucket="public", ACL="public-read")
    cloud.s3.put_object(Bucket="public", Key="f", Body=b"content", ACL="public-read")
    await fetch("s3://public/f", target, ENDPOINT=cloud.url)
    assert tree(target) == {"f": b"content"}
    cloud.put(f=b"content")
    with pytest.raises(NotPermitted, match=r"it is not public, and there are no keys .*: set ACCESS_KEY_ID"):
        await fetch("s3://data/f", target, ENDPOINT=cloud.url)


async def test_half_a_key_is_refused(cloud: Cloud, target: Path) -> None:
    with pytest.raises(Misconfigured, match="ACCESS_KEY_ID is set without SECRET_ACCESS_KEY"):
        await fetch("s3://data/f", target, ENDPOINT=cloud.url, ACCESS_KEY_ID="x")


async def test_a_role_is_taken_with_the_keys(cloud: Cloud, target: Path) -> None:
    cloud.put(f=b"content")
    cloud.guard()
    sts: dict[str, Any] = {"ROLE_ARN": ROLE, "AWS_ENDPOINT_URL_STS": cloud.url}
    await fetch("s3://data/f", target, **cloud.variables, **sts)
    assert tree(target) == {"f": b"content"}
    with pytest.raises(NotPermitted, match=r"the role .*role/other: no keys were given for it .AccessDenied"):
        await fetch("s3://data/f", target / "2", **{**cloud.variables, **sts, "ROLE_ARN": ROLE[:-6] + "other"})


async def test_a_token_file_of_the_service_account_is_exchanged(cloud: Cloud, target: Path, tmp_path: Path) -> None:
    cloud.put(f=b"content")
    token = tmp_path / "token"
    token.write_text("a.b.c\n")
    await fetch(
        "s3://data/f",
        target,
        AWS_ENDPOINT_URL=cloud.url,
        AWS_ENDPOINT_URL_STS=cloud.url,
        AWS_ROLE_ARN=ROLE,
        AWS_WEB_IDENTITY_TOKEN_FILE=str(token),
    )
    assert tree(target) == {"f": b"content"}
    with pytest.raises(Misconfigured, match=r"the token file .* cannot be read"):
        await fetch("s3://data/f", target, AWS_ROLE_ARN=ROLE, AWS_WEB_IDENTITY_TOKEN_FILE=str(tmp_path / "none"))


@pytest.mark.parametrize("how", [{}, {"ChecksumAlgorithm": "SHA256"}, {"ChecksumAlgorithm": "CRC32"}])
async def test_bytes_that_are_not_the_stored_ones_are_not_kept(
    how: dict[str, str], cloud: Cloud, between: FileServer, target: Path
) -> None:
    cloud.put_object("damaged", b"content", **how)
    algorithm = "sha256" if how == {"ChecksumAlgorithm": "SHA256"} else "md5"
    with pytest.raises(Damaged, match=f"damaged: the {algorithm} is"):
        await fetch("s3://data/damaged", target, ENDPOINT=between.url, **cloud.keys)
    assert tree(target) == {}


async def test_an_etag_of_an_encrypted_object_is_no_checksum(cloud: Cloud, between: FileServer, target: Path) -> None:
    cloud.put_object("damaged", b"content", ServerSideEncryption="aws:kms")
    await fetch("s3://data/damaged", target, ENDPOINT=between.url, **cloud.keys)
    assert tree(target) == {"damaged": b"conten?"}  # nobody could know


async def test_the_region_that_the_server_names_is_used(cloud: Cloud, between: FileServer, target: Path) -> None:
    cloud.put(f=b"content")

    def elsewhere(request: Request) -> Answer | None:
        if "/eu-north-1/s3/" in request.headers["Authorization"]:
            return None
        code = b"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-north-1</Region></Error>"
        return Answer(400, {}, code)

    between.routes.insert(0, elsewhere)
    await fetch("s3://data/f", target, ENDPOINT=between.url, **cloud.keys)
    assert tree(target) == {"f": b"content"}


async def test_an_object_that_is_replaced_meanwhile_is_taken_whole(
    cloud: Cloud, between: FileServer, target: Path
) -> None:
    cloud.put(f=b"old")

    def replace(request: Request) -> None:
        if request.path == "/data/f" and request.method == "GET":
            between.routes.remove(replace)
            cloud.put(f=b"new!")

    between.routes.insert(0, replace)
    said = await fetch("s3://data/f", target, ENDPOINT=between.url, **cloud.keys)
    assert tree(target) == {"f": b"new!"}
    assert "an object has changed since it was listed; listing it again" in said


async def test_an_object_that_changes_all_the_time_is_given_up(cloud: Cloud, between: FileServer, target: Path) -> None:
    cloud.put(f=b"x")

    def replace(request: Request) -> None:
        if request.path == "/data/f":
            cloud.put(f=request.headers["X-Amz-Date"].encode() + bytes(len(between.requests)))

    between.routes.insert(0, replace)
    with pytest.raises(Changed):
        await fetch("s3://data/f", target, ENDPOINT=between.url, **cloud.keys)


async def test_a_server_that_is_busy_is_asked_again(cloud: Cloud, between: FileServer, target: Path) -> None:
    cloud.put(f=b"content")
    busy = [
        Answer(503, {}, b"<Error><Code>SlowDown</Code></Error>"),
        Answer(400, {}, b"<Error><Code>RequestTimeout</Code></Error>"),
    ]
    between.routes.insert(0, lambda request: busy.pop() if busy else None)
    await fetch("s3://data/f", target, ENDPOINT=between.url, **cloud.keys)
    assert tree(target) == {"f": b"content"}


@pytest.mark.parametrize("key", ["p/../../evil", "p/a/../evil", "p/.trainwright/fetched"])
async def test_hostile_keys_are_refused_and_nothing_is_written(key: str, cloud: Cloud, target: Path) -> None:
    cloud.put(**{"p/good": b"1", key: b"evil"})
    with pytest.raises(UnsafeName):
        await fetch("s3://data/p", target, **cloud.variables)
    assert tree(target) == {}


async def test_something_else_than_an_s3_server_is_recognised(target: Path) -> None:
    with file_server() as web:
        web.routes.append(lambda request: Answer(200, {}, b"<!DOCTYPE html><html></html>"))
        with pytest.raises(Unreachable, match=r"is http://127.0.0.1:[0-9]+ an S3 server"):
            await fetch("s3://data/f", target, ENDPOINT=web.url)


def test_the_command_reads_the_reference_s_variables(cloud: Cloud, target: Path) -> None:
    cloud.put(**{"m/model.safetensors": b"weights", "m/skip.bin": b""})
    cloud.guard()
    variables = {**cloud.variables, "STORAGE_URI": "s3://data/m", "REGION": "eu-west-1", "IGNORE_PATTERNS": "*.bin"}
    assert "1 file with 7 B" in run("model", "--target", target, variables=variables)
    assert tree(target) == {"model.safetensors": b"weights"}
    run("model", "--target", target, code=3, variables={**variables, "SECRET_ACCESS_KEY": "wrong"})
