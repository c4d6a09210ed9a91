"""Small parts of the operator: status patches, names of revisions, keys, and how often an event is sent."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_public_key
from hypothesis import given
from hypothesis import strategies as st

from trainwright.api.configuration import ConfigurationError
from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import EVENTS, TRAIN_JOBS
from trainwright.api.trainjob import TrainerStatus, TrainJobStatus
from trainwright.operator.runtimes.revisions import content_of, name_of
from trainwright.operator.serving.listening import split_address
from trainwright.operator.trainjobs.events import Events
from trainwright.operator.trainjobs.keys import GeneratedKeys, z85
from trainwright.operator.trainjobs.statuses import difference
from trainwright.testing.virtualserver import VirtualServer
from unit.operator.world import runtime


def test_a_status_patch_has_what_changed_and_nulls_what_went() -> None:
    old = TrainJobStatus(state="Pending", message="waiting", runtime_revision="r")
    new = TrainJobStatus(state="Running", runtime_revision="r")
    assert difference(old, new) == {"state": "Running", "message": None}
    assert difference(new, new) == {}
    assert difference(None, new) == {"state": "Running", "runtimeRevision": "r"}


def test_progress_is_never_part_of_the_controllers_patch() -> None:
    old = TrainJobStatus(trainer_status=TrainerStatus(progress_percentage=5, last_updated_time="t"))
    assert difference(old, TrainJobStatus()) == {}


def test_a_revision_is_named_by_its_content_and_by_nothing_else() -> None:
    one, other = runtime(), runtime()
    other["metadata"].update(uid="x", resourceVersion="9", managedFields=[], creationTimestamp="t")
    other["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    other["status"] = {}
    assert name_of(content_of(one)) == name_of(content_of(other))
    other["metadata"]["labels"] = {"a": "b"}
    assert name_of(content_of(one)) != name_of(content_of(other))
    namespaced = runtime(kind="TrainingRuntime")
    assert name_of(content_of(one)) != name_of(content_of(namespaced))


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=8))
def test_the_order_of_members_does_not_change_a_revisions_name(members: dict[str, int]) -> None:
    one, other = runtime(), runtime()
    one["spec"]["extra"] = members
    other["spec"] = {"extra": dict(reversed(members.items())), **other["spec"]}
    assert name_of(content_of(one)) == name_of(content_of(other))


@pytest.mark.parametrize("length", [1, 63, 253])
def test_a_revisions_name_fits_whatever_the_runtimes_length(length: int) -> None:
    assert len(name_of(content_of(runtime("a" * length)))) <= 253


def test_z85_gives_the_rfcs_vector() -> None:
    assert z85(bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])) == "HelloWorld"


def test_a_curve_certificate_follows_from_the_uid_alone() -> None:
    one = GeneratedKeys().curve_certificate("job", "uid-1")
    assert one == GeneratedKeys().curve_certificate("job", "uid-1")
    assert one != GeneratedKeys().curve_certificate("job", "uid-2")
    text = base64.b64decode(one["curve.cert"]).decode()
    assert 'name = "job"' in text


def test_an_ssh_pair_belongs_together_and_is_new_each_time() -> None:
    pair = GeneratedKeys().ssh_auth()
    private = load_pem_private_key(base64.b64decode(pair["ssh-privatekey"]), None)
    public = load_ssh_public_key(base64.b64decode(pair["ssh-publickey"]))
    assert private.public_key() == public
    assert base64.b64decode(pair["ssh-privatekey"]).startswith(b"-----BEGIN EC PRIVATE KEY-----")
    assert pair != GeneratedKeys().ssh_auth()


async def test_the_same_event_is_told_again_only_after_a_while_with_how_often() -> None:
    job = ObjectMeta(name="job", namespace="default", uid="u")
    async with VirtualServer() as server:
        events = Events(server.client, "me")
        for _ in range(10):
            await events.tell(TRAIN_JOBS, job, "Failed", "it broke")
            await server.clock.advance(60)
        told = sorted(server.list(EVENTS), key=lambda event: int(event["count"]))
        assert [event["count"] for event in told] == [1, 6]
        assert told[1]["firstTimestamp"] < told[1]["lastTimestamp"]
        await events.tell(TRAIN_JOBS, job, "Failed", "it broke otherwise")
        assert len(server.list(EVENTS)) == 3


async def test_an_event_is_never_longer_than_the_server_takes() -> None:
    async with VirtualServer() as server:
        job = ObjectMeta(name="job", namespace="default")
        await Events(server.client, "me").tell(TRAIN_JOBS, job, "R", "x" * 5000)
        [event] = server.list(EVENTS)
        assert len(event["message"]) <= 1024


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8443", ("", 8443)),
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_addresses_are_read_as_go_writes_them(text: str, address: tuple[str, int]) -> None:
    assert split_address(text) == address


@pytest.mark.parametrize("text", ["8443", ":", "host:port", "host:99999"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not an address"):
        split_address(text)
