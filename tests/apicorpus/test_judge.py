"""The judge itself: an answer as recorded passes, and any other is told, with the weight that the facet has."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from apicorpus.judgement import FACETS, Invariants, Result, compare
from apicorpus.normalform import normal_form
from apicorpus.paths import MISSING, assign, lookup, remove
from apicorpus.placeholders import Matcher
from apicorpus.recording import Recorder

Json = dict[str, Any]
NOW = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
UID = "0b9bb7f2-6a4c-4c6f-9a3e-2f1f6a3e7c11"


def manager(name: str, operation: str = "Update") -> Json:
    return {"manager": name, "operation": operation, "fieldsV1": {"f:spec": {}}, "time": NOW}


def answered() -> Json:
    metadata = {
        "name": "w-abcde",
        "generateName": "w-",
        "uid": UID,
        "resourceVersion": "17",
        "creationTimestamp": NOW,
        "generation": 1,
        "managedFields": [manager("alice"), manager("bob", "Apply")],
    }
    body = {"kind": "Widget", "metadata": metadata, "spec": {"sizes": [1, 2], "at": "2001-01-01T00:00:00Z"}}
    return {"status": 200, "contentType": "application/json", "warning": ['299 - "old"'], "body": body}


def refused() -> Json:
    causes = [{"field": "spec.a", "message": "too long"}, {"field": "spec.b", "message": "too short"}]
    message = "w is invalid: [spec.a: too long, spec.b: too short]"
    details = {"name": "w", "causes": causes}
    body = {"kind": "Status", "status": "Failure", "code": 422, "message": message, "details": details}
    return {"status": 422, "contentType": "application/json", "warning": [], "body": body}


def judged(recorded: Json, got: Json) -> dict[str, list[str]]:
    """The facets with differences between what was recorded and what came, in another run of the scenario."""
    expected = Recorder("first").expectation({}, {**recorded, "body": normal_form(recorded["body"])})
    shaped = {**got, "body": normal_form(got["body"])}
    return {facet: found for facet, found in compare(expected, shaped, Matcher("second")).items() if found}


def with_value(path: str, value: Any) -> Callable[[Json], None]:
    return lambda answer: assign(answer, path, value)


def without(path: str) -> Callable[[Json], None]:
    return lambda answer: remove(answer, path)


def test_another_run_with_other_uids_versions_and_orders_passes() -> None:
    again = answered()
    metadata = again["body"]["metadata"]
    metadata.update(uid=UID.replace("0", "4"), resourceVersion="4711", name="w-xyz99")
    metadata["managedFields"].reverse()
    again["contentType"] = "application/json; charset=utf-8"
    assert judged(answered(), again) == {}


def test_causes_may_come_in_any_order_also_inside_the_message() -> None:
    again = refused()
    again["body"]["details"]["causes"].reverse()
    again["body"]["message"] = "w is invalid: [spec.b: too short, spec.a: too long]"
    assert judged(refused(), again) == {}


@pytest.mark.parametrize(
    ("change", "facet"),
    [
        pytest.param(with_value("status", 201), "core", id="another status"),
        pytest.param(with_value("body/metadata/generation", 2), "core", id="another number"),
        pytest.param(with_value("body/metadata/generation", 1.0), "core", id="another type of number"),
        pytest.param(with_value("body/metadata/generation", True), "core", id="a boolean for a number"),
        pytest.param(with_value("body/metadata/uid", ""), "core", id="no uid in it"),
        pytest.param(with_value("body/metadata/creationTimestamp", "2001-01-01T00:00:00Z"), "core", id="an old time"),
        pytest.param(with_value("body/spec/at", NOW), "core", id="now instead of a time that was set"),
        pytest.param(with_value("body/spec/sizes", [2, 1]), "core", id="another order"),
        pytest.param(with_value("body/spec/sizes", [1]), "core", id="a short list"),
        pytest.param(without("body/spec/sizes"), "core", id="a missing field"),
        pytest.param(with_value("body/spec/new", None), "core", id="a field too many"),
        pytest.param(with_value("body/metadata/managedFields/0/operation", "Apply"), "managedFields", id="operation"),
        pytest.param(without("body/metadata/managedFields/0"), "managedFields", id="an entry lost"),
        pytest.param(with_value("warning", []), "warning", id="a warning lost"),
        pytest.param(with_value("contentType", "application/yaml"), "contentType", id="another content type"),
    ],
)
def test_every_difference_is_told_in_its_facet(change: Callable[[Json], None], facet: str) -> None:
    again = answered()
    change(again)
    assert list(judged(answered(), again)) == [facet]


def test_an_answer_without_a_body_differs_from_one_with_it() -> None:
    expected = Recorder("first").expectation({}, answered())
    empty = {"status": 200, "contentType": "application/json", "warning": []}
    assert compare(expected, empty, Matcher("second"))["core"]


@pytest.mark.parametrize("path", ["body/message", "body/details/causes/0/message"])
def test_texts_of_a_failure_are_a_facet_of_their_own(path: str) -> None:
    again = refused()
    assign(again, path, "in other words")
    assert list(judged(refused(), again)) == ["message"]


def test_equal_numbers_are_equal_values_and_different_numbers_different_ones() -> None:
    matcher = Matcher("run")

    def differences(expected: str, actual: str) -> list[str]:
        out: list[str] = []
        matcher.match(expected, actual, "", out)
        return out

    assert differences("{{rv:1}}", "10") == []
    assert differences("{{rv:1}} then {{rv:2}}", "10 then 12") == []
    assert "same rv" in differences("{{rv:1}}", "11")[0]
    assert "not seen before" in differences("{{rv:3}}", "12")[0]


def test_a_failure_counts_with_the_lower_of_two_priorities() -> None:
    def worst(priority: str, **facets: list[str]) -> str | None:
        return Result("s", 1, priority, facets=facets).verdict(FACETS)[0]

    assert worst("must", core=[]) is None
    assert worst("must", core=["x"]) == "must"
    assert worst("must", managedFields=["x"]) == "should"
    assert worst("must", managedFields=["x"], message=["y"]) == "must"
    assert worst("could", core=["x"]) == "could"
    spoken = Result("s", 1, "must", message_priority="could", facets={"message": ["x"]})
    assert spoken.verdict(FACETS) == ("could", ["[message/could] x"])


def test_creation_times_stay_and_no_list_is_older_than_its_items() -> None:
    broken: list[str] = []
    invariants = Invariants()
    invariants.check(answered()["body"], broken)
    younger = copy.deepcopy(answered()["body"])
    younger["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z"
    invariants.check([younger], broken)
    invariants.check({"metadata": {"resourceVersion": "16"}, "items": [answered()["body"]]}, broken)
    assert [sentence.split(" ")[0] for sentence in broken] == ["creationTimestamp", "list"]


def test_a_token_request_has_a_creation_time_of_its_own() -> None:
    broken: list[str] = []
    invariants = Invariants()
    account = {"kind": "ServiceAccount", "metadata": {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    request = {"kind": "TokenRequest", "metadata": {"uid": "u", "creationTimestamp": "2026-01-01T00:00:01Z"}}
    for document in (account, request, account):
        invariants.check(document, broken)
    assert broken == []


def test_paths_pick_summarise_and_miss() -> None:
    document = {"a/b": [{"name": "x", "port": {"n": 1}}, {"name": "y", "port": {"n": 2}}]}
    assert lookup(document, "a~1b/[port.n=2]/name") == "y"
    assert lookup(document, "a~1b/-1/name") == "y"
    assert lookup(document, "a~1b/*[name]") == ["x", "y"]
    assert (lookup(document, "*keys"), lookup(document, "a~1b/*len")) == (["a/b"], 2)
    assert lookup(document, "a~1b/[name=z]/port") == lookup(document, "a~1b/2") == MISSING
    remove(document, "a~1b/*/port/n")
    assert document == {"a/b": [{"name": "x", "port": {}}, {"name": "y", "port": {}}]}
