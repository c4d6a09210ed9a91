"""JSON of built-in kinds as Go's types leave it."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.wire.table import DecodeError, decode


def test_empty_values_go_and_structs_without_omission_stay() -> None:
    value, unknown = decode("core/v1.Pod", {"metadata": {"labels": {}}, "spec": {"containers": [{"name": "a"}]}})
    assert value["metadata"] == {}
    assert value["status"] == {}
    assert value["spec"]["containers"] == [{"name": "a", "resources": {}}]
    assert unknown == []


def test_unknown_fields_are_dropped_and_named_in_the_order_of_the_body() -> None:
    body = {"zeta": 1, "spec": {"containers": [{"name": "a", "imagee": "x"}], "beta": 2}, "alpha": 3}
    value, unknown = decode("core/v1.Pod", body)
    assert unknown == ["zeta", "spec.containers[0].imagee", "spec.beta", "alpha"]
    assert "zeta" not in value


@pytest.mark.parametrize(
    "body",
    [
        {"data": {"a": 1}},
        {"data": ["a"]},
        {"data": "a"},
        {"metadata": {"name": 5}},
        {"metadata": {"labels": {"a": True}}},
        {"binaryData": {"a": "not base64!"}},
        {"immutable": "yes"},
    ],
)
def test_values_of_the_wrong_type_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        decode("core/v1.ConfigMap", body)


@pytest.mark.parametrize(("given", "kept"), [("1000m", "1"), ("1.5", "1500m"), (2, "2"), ("1Gi", "1Gi")])
def test_quantities_are_written_in_their_canonical_form(given: Any, kept: str) -> None:
    limits = {"resources": {"limits": {"cpu": given}}, "name": "a"}
    value, _ = decode("core/v1.Pod", {"spec": {"containers": [limits]}})
    assert value["spec"]["containers"][0]["resources"]["limits"]["cpu"] == kept
