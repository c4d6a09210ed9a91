"""Creates and updates through the shared core: rules that no single kind owns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainwright.client.requests import APPLY_PATCH, Request
from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.fieldmanager.manager import FieldManager
from trainwright.embedded.apiserver.fieldmanager.nodes import UNTYPED
from trainwright.embedded.apiserver.http.requests import Call, Query
from trainwright.embedded.apiserver.operations import patching, reading
from trainwright.embedded.apiserver.operations.appliedcache import AppliedCache, ParsedApply
from trainwright.embedded.apiserver.operations.updating import update
from trainwright.embedded.apiserver.operations.writes import Write, WriteOptions, in_place, replacing
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.schema.jsonobject import Json
from trainwright.testing.virtualserver import VirtualServer

MERGE = "application/merge-patch+json"
THINGS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def call(core: Any, method: str, plural: str, query: str = "", **more: Any) -> Call:
    headers = {"Content-Type": more.get("content_type", "application/json"), "Accept": more.get("accept", "")}
    return Call(
        method,
        "/",
        Query(query),
        headers,
        SYSTEM,
        core.served(plural, more.get("group", "")),
        "default",
        more.get("name", ""),
        more.get("subresource", ""),
        body=more.get("body", b""),
    )


async def patch(core: Any, plural: str, body: str, content_type: str = MERGE, **more: Any) -> Any:
    made = call(core, "PATCH", plural, "fieldManager=m", body=body.encode(), content_type=content_type, **more)
    return json.loads((await patching.patch(core.api, made)).body)


@pytest.mark.parametrize("body", ["not json", "[]", '{"data":{"a":1}}'])
async def test_a_patch_of_nothing_is_not_read(core: Any, body: str) -> None:
    with pytest.raises(StatusError, match='configmaps "c" not found'):
        await patch(core, "configmaps", body, name="c")


async def test_an_apply_to_the_status_of_nothing_is_not_read(core: Any) -> None:
    with pytest.raises(StatusError, match='pods "p" not found'):
        await patch(core, "pods", "{", "application/apply-patch+yaml", name="p", subresource="status")


async def test_a_merge_patch_cannot_change_the_kind_and_a_strategic_one_does_not(core: Any) -> None:
    await core.create("configmaps", {"metadata": {"name": "c"}})
    with pytest.raises(StatusError, match='no kind "Other" is registered for version "v1"') as found:
        await patch(core, "configmaps", '{"kind":"Other"}', name="c")
    assert found.value.code == 422
    with pytest.raises(StatusError, match=r"converting \(v1.Pod\) to \(core.ConfigMap\): unknown conversion"):
        await patch(core, "configmaps", '{"kind":"Pod"}', name="c")
    assert (await patch(core, "configmaps", '{"kind":null}', name="c"))["kind"] == "ConfigMap"
    strategic = "application/strategic-merge-patch+json"
    assert (await patch(core, "configmaps", '{"kind":"Other"}', strategic, name="c"))["kind"] == "ConfigMap"


async def test_a_name_that_could_have_been_generated_says_so_when_it_is_taken(core: Any) -> None:
    taken = {"metadata": {"name": "c", "generateName": "c-"}}
    await core.create("configmaps", taken)
    with pytest.raises(StatusError) as found:
        await core.create("configmaps", taken)
    assert found.value.message.endswith("the server was not able to generate a unique name for the object")
    assert found.value.reason == "AlreadyExists"
    assert found.value.details == {"name": "c", "kind": "configmaps", "retryAfterSeconds": 1}


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("fieldSelector=bogus%3D1&resourceVersionMatch=Exact", 422, "resourceVersionMatch: Forbidden"),
        ("labelSelector=a+b&resourceVersionMatch=Exact", 400, "unable to parse requirement"),
        ("limit=x&resourceVersionMatch=Exact", 400, 'parsing "x": invalid syntax'),
        ("resourceVersion=x", 400, "invalid resource version: resourceVersion: Invalid value"),
        (
            "continue=bogus",
            400,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 4",
        ),
        ("continue=a$b", 400, "illegal base64 data at input byte 1"),
        ("continue=YWJj", 400, "invalid character 'a' looking for beginning of value"),
        ("continue=e30", 400, "server does not recognize this encoded version "),
    ],
)
async def test_list_options_are_judged_in_the_servers_order(core: Any, query: str, code: int, text: str) -> None:
    with pytest.raises(StatusError) as found:
        await reading.list_objects(core.api, call(core, "GET", "pods", query))
    assert found.value.code == code
    assert text in found.value.message


async def test_a_list_of_no_metadata_is_null(core: Any) -> None:
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    answer = await reading.list_objects(core.api, call(core, "GET", "configmaps", accept=accept))
    assert json.loads(answer.body)["items"] is None


async def test_paging_goes_on_where_it_stopped_and_sees_one_moment(core: Any) -> None:
    for name in ("a", "b", "c"):
        await core.create("configmaps", {"metadata": {"name": name}})
    first = json.loads((await reading.list_objects(core.api, call(core, "GET", "configmaps", "limit=2"))).body)
    await core.create("configmaps", {"metadata": {"name": "d"}})
    token = first["metadata"]["continue"]
    rest = json.loads((await reading.list_objects(core.api, call(core, "GET", "configmaps", f"continue={token}"))).body)
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 1
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]


async def test_a_job_without_labels_shares_those_of_its_template(core: Any) -> None:
    pod = {"containers": [{"name": "a", "image": "i"}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"x": "y"}}, "spec": pod}
    shared = await core.create("jobs", {"metadata": {"name": "a"}, "spec": {"template": template}}, group="batch")
    assert shared["metadata"]["labels"] == shared["spec"]["template"]["metadata"]["labels"]
    assert shared["metadata"]["labels"]["job-name"] == "a"
    own = {"metadata": {"name": "b", "labels": {"x": "y"}}, "spec": {"template": template}}
    assert (await core.create("jobs", own, group="batch"))["metadata"]["labels"] == {"x": "y"}


@pytest.mark.parametrize(
    ("before", "sent", "after"),
    [
        ({}, {"podIP": "10.0.0.1"}, ("10.0.0.1", ["10.0.0.1"])),
        ({"podIP": "10.0.0.1"}, {"podIP": "10.0.0.2"}, ("10.0.0.2", ["10.0.0.2"])),
        ({"podIP": "10.0.0.1"}, {"podIP": None}, ("10.0.0.1", ["10.0.0.1"])),
        ({"podIP": "10.0.0.1"}, {"podIPs": [{"ip": "10.0.0.9"}]}, ("10.0.0.1", ["10.0.0.1"])),
        ({}, {"podIPs": [{"ip": "10.0.0.9"}]}, ("10.0.0.9", ["10.0.0.9"])),
    ],
)
async def test_a_pods_address_is_the_first_of_its_addresses(core: Any, before: Any, sent: Any, after: Any) -> None:
    await core.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "i"}]}})
    status: dict[str, Any] = {}
    for body in (before, sent):
        made = await patch(core, "pods", json.dumps({"status": body}), name="p", subresource="status")
        status = made["status"]
    assert (status["podIP"], [entry["ip"] for entry in status["podIPs"]]) == after


async def test_a_gated_pod_says_why_it_is_not_scheduled(core: Any) -> None:
    spec = {"containers": [{"name": "a", "image": "i"}], "schedulingGates": [{"name": "g"}]}
    made = await core.create("pods", {"metadata": {"name": "p"}, "spec": spec})
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


async def test_an_update_that_changes_nothing_keeps_the_version(core: Any) -> None:
    made = await core.create("configmaps", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    key = Key("configmaps", "default", "c")
    options = WriteOptions(manager="other")
    write = Write(core.served("configmaps"), key, SYSTEM, options, in_place(lambda obj: None))
    written = await update(core.api, write)
    assert written.obj["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_patch_is_decoded_before_its_name_is_judged(core: Any) -> None:
    await core.create("configmaps", {"metadata": {"name": "c"}})
    with pytest.raises(StatusError, match=r"cannot unmarshal object into Go struct field ObjectMeta\.metadata\.name"):
        await patch(core, "configmaps", '{"metadata":{"name":{"x":"y"}}}', name="c")
    with pytest.raises(StatusError, match="does not match the name on the URL"):
        await patch(core, "configmaps", '{"metadata":{"name":"other"}}', name="c")


@pytest.mark.parametrize(("plural", "group"), [("services", ""), ("leases", "coordination.k8s.io")])
async def test_some_kinds_may_be_made_by_an_update(core: Any, plural: str, group: str) -> None:
    served = core.served(plural, group)
    obj, _ = served.strategy.decode({"apiVersion": served.api_version, "kind": served.kind, "metadata": {"name": "x"}})
    served.strategy.default(obj)
    obj["spec"] = {**obj.get("spec", {}), **({"clusterIP": "None"} if plural == "services" else {})}
    key = Key(served.resource, "default", "x")
    assert (await update(core.api, Write(served, key, SYSTEM, WriteOptions(), replacing(obj)))).created


async def test_a_write_for_another_uid_is_refused(core: Any) -> None:
    made = await core.create("configmaps", {"metadata": {"name": "c"}})
    key = Key("configmaps", "default", "c")

    def write(uid: str) -> Write:
        change = in_place(lambda obj: obj.update(data={"a": uid}))
        return Write(core.served("configmaps"), key, SYSTEM, WriteOptions(), change, uid=uid)

    with pytest.raises(StatusError, match="Precondition failed: UID in precondition: other") as found:
        await update(core.api, write("other"))
    assert found.value.code == 409
    uid = made["metadata"]["uid"]
    assert (await update(core.api, write(uid))).obj["data"] == {"a": uid}


async def test_what_is_not_canonical_is_stored_again_by_the_next_write_even_if_that_changes_nothing(
    server: VirtualServer,
) -> None:
    body: Any = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "labels": {"a": None}}}
    path = "/apis/example.com/v1/namespaces/default/things/t"
    await server.server.install([THINGS])

    async def patch(content_type: str, change: Any) -> str:
        request = Request("PATCH", path, (("fieldManager", "m"),), json.dumps(change).encode(), content_type)
        answer = await server.client.transport.send(request, deadline=1.0)
        assert answer.status in (200, 201), answer.body
        return str(json.loads(answer.body)["metadata"]["resourceVersion"])

    applied = await patch(APPLY_PATCH, body)  # stored with a label that is null, which vanishes when it is read
    assert len(server.server.api.uncanonical) == 1
    stored = await patch(MERGE, {})
    assert stored != applied
    assert await patch(MERGE, {}) == stored
    assert server.server.api.uncanonical == {}
    await patch(APPLY_PATCH, body)
    assert len(server.server.api.uncanonical) == 1
    await server.client.transport.send(Request("DELETE", path), deadline=1.0)
    assert server.server.api.uncanonical == {}


def test_configurations_used_last_are_kept() -> None:
    cache, parsed = AppliedCache(), []
    manager = FieldManager(UNTYPED, "v1", "Thing")

    def get(body: bytes) -> ParsedApply:
        def parse() -> ParsedApply:
            parsed.append(body)
            return ParsedApply(manager.prepare({"metadata": {"name": body.decode()[:20]}}), [])

        return cache.get(manager, body, parse)

    assert get(b"a") is get(b"a")
    for number in range(127):
        get(b"%d" % number)
    get(b"a")
    get(b"one more")  # the oldest goes for it, and that is not the one just used
    get(b"a")
    get(b"0")
    get(b"x" * 100_000)
    get(b"x" * 100_000)  # too large to keep
    assert [body for body in parsed if parsed.count(body) > 1] == [b"0", b"0", b"x" * 100_000, b"x" * 100_000]
