"""What form a client gets."""

from __future__ import annotations

import json

import pytest
import yaml

from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.negotiation import PLAIN, Form, negotiate, render

KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("application/yaml", Form("application/yaml")),
        ("text/html, application/yaml", Form("application/yaml")),
        ("application/yaml;q=0.5, application/json", PLAIN),
        ("application/vnd.kubernetes.protobuf,application/json", PLAIN),
        (KUBECTL, Form(kind="Table")),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Form(kind="Table", version="v1beta1")),
        ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", Form(kind="PartialObjectMetadata")),
        ("application/json;as=Table;v=v2;g=meta.k8s.io, application/json", PLAIN),
    ],
)
def test_the_first_form_that_can_be_given_is(accept: str, form: Form) -> None:
    assert negotiate(accept) == form


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "text/yaml",
        "application/*",
        "application/json;as=Picture;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
    ],
)
def test_what_cannot_be_given_is_refused(accept: str) -> None:
    with pytest.raises(StatusError) as found:
        negotiate(accept)
    assert found.value.code == 406
    assert "application/json, application/yaml" in found.value.message


def test_any_application_type_is_enough_for_custom_resources() -> None:
    assert negotiate("application/*", custom=True) == PLAIN


def test_custom_resources_are_refused_in_the_words_of_the_decoder() -> None:
    with pytest.raises(StatusError) as found:
        negotiate("text/html", custom=True)
    assert found.value.message.startswith("only the following media types are accepted: application/json")


def test_both_forms_carry_the_same_value() -> None:
    value = {"a": [1, "ü", None], "b": {"c": True}}
    assert json.loads(render(PLAIN, value)) == value
    assert yaml.safe_load(render(Form("application/yaml"), value)) == value
