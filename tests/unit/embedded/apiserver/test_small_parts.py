"""JSONPath, ages, version order, bodies, negotiation: the small parts, each by its promise."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.custom import jsonpath
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.age import human_duration
from trainwright.embedded.apiserver.http.bodies import parse_json, parse_yaml
from trainwright.embedded.apiserver.http.negotiation import negotiate
from trainwright.embedded.apiserver.http.requests import Query
from trainwright.embedded.apiserver.registry import version_order

OBJECT: Any = {
    "metadata": {"name": "x", "labels": {"a.b/c": "d"}},
    "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}], "n": 3},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["x"]),
        (".status.conditions[1].type", ["Ready"]),
        (".status.conditions[-1].type", ["Ready"]),
        (".status.conditions[*].type", ["A", "Ready"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Nope')].status", []),
        (".metadata.labels.a\\.b/c", None),
        (".metadata.labels['a.b/c']", ["d"]),
        (".nothing.here", []),
        ("{.status.n}", [3]),
    ],
)
def test_jsonpath_finds_what_printer_columns_ask_for(path: str, found: Any) -> None:
    if found is None:
        with pytest.raises(jsonpath.JsonPathError):
            jsonpath.find(path, OBJECT)
    else:
        assert jsonpath.find(path, OBJECT) == found


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (264, "4m24s"),
        (3600, "60m"),
        (5 * 3600 + 60, "5h1m"),
        (3 * 86400, "3d"),
        (-5, "<invalid>"),
    ],
)
def test_ages_read_as_kubectl_prints_them(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


def test_versions_are_ordered_as_kubernetes_prefers_them() -> None:
    versions = ["v1alpha1", "foo", "v1", "v2beta1", "v2", "v1beta2", "v10"]
    assert sorted(versions, key=version_order) == ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]


def test_duplicate_fields_are_found_with_their_paths() -> None:
    value, duplicates = parse_json(b'{"spec":{"size":1,"size":2,"items":[{"a":1,"a":2}]}}')
    assert value["spec"]["size"] == 2
    assert duplicates == ['duplicate field "spec.size"', 'duplicate field "spec.items[0].a"']


def test_numbers_become_what_go_would_hold() -> None:
    assert parse_json(b'{"a":2.0,"b":1.5,"c":1e30}')[0] == {"a": 2, "b": 1.5, "c": 1e30}


@pytest.mark.parametrize("body", [b"", b"{", b'{"a":NaN}', b"\xff", b"[" * 10_000, b'{"a":' * 3_000])
def test_what_is_not_json_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_json(body)


def test_yaml_keeps_dates_as_text_and_refuses_aliases() -> None:
    assert parse_yaml(b"a: 2024-01-01\nb: 2024-01-01T00:00:00Z")[0] == {"a": "2024-01-01", "b": "2024-01-01T00:00:00Z"}
    with pytest.raises(ValueError, match="aliases"):
        parse_yaml(b"a: &x [1]\nb: *x")


@pytest.mark.parametrize(
    ("text", "flag"), [("", False), ("x", True), ("x=", True), ("x=0", False), ("x=False", False), ("x=True", True)]
)
def test_query_flags_follow_kubernetes(text: str, flag: bool) -> None:
    assert Query(text).flag("x") is flag


def test_the_first_acceptable_form_wins() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    assert negotiate(table).kind == "Table"
    assert negotiate("application/vnd.kubernetes.protobuf,application/json").kind == ""
    assert negotiate("application/yaml;q=0.1,application/json").media_type == "application/json"
    with pytest.raises(StatusError):
        negotiate("application/vnd.kubernetes.protobuf")
