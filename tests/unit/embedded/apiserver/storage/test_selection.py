"""Selectors of a list or watch on stored objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainwright.clock import VirtualClock
from trainwright.embedded.apiserver.builtin.kinds import builtin_types
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.requests import Query
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.storage.objects import stored_from
from trainwright.embedded.apiserver.storage.selection import selection
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

REGISTRY = Registry(builtin_types(VirtualClock()))


def served(plural: str) -> Type:
    found = REGISTRY.find("", "v1", plural)
    assert found is not None
    return found


def matches(query: str, *, plural: str = "pods", **content: Any) -> bool:
    name = "p"
    body = {"metadata": {"name": name, "namespace": "ns", "labels": content.pop("labels", {})}, **content}
    stored = stored_from(Key(plural, "ns", name), 1, json.dumps(body).encode())
    return selection(served(plural), Query(query)).matches(stored)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", True),
        ("labelSelector=app%3Da", True),
        ("labelSelector=app%21%3Da", False),
        ("labelSelector=app+in+(a,b),tier", True),
        ("labelSelector=!app", False),
        ("fieldSelector=metadata.name%3Dp", True),
        ("fieldSelector=metadata.namespace%3Dother", False),
        ("fieldSelector=spec.nodeName%3Dn1", True),
        ("fieldSelector=spec.nodeName%21%3Dn1", False),
        ("fieldSelector=status.phase%3DRunning,metadata.name%3Dp", True),
        ("labelSelector=app%3Da&fieldSelector=status.phase%3DFailed", False),
    ],
)
def test_both_selectors_must_hold(query: str, expected: bool) -> None:
    content: Json = {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}, "labels": {"app": "a", "tier": ""}}
    assert matches(query, **content) is expected


@pytest.mark.parametrize("query", ["labelSelector=a+in+x", "labelSelector=-a", "fieldSelector=metadata.name"])
def test_selectors_that_cannot_be_read_are_refused(query: str) -> None:
    with pytest.raises(StatusError) as found:
        selection(served("pods"), Query(query))
    assert found.value.code == 400


def test_fields_that_cannot_be_selected_by_are_refused_by_name() -> None:
    with pytest.raises(StatusError, match=r"field label not supported: spec\.color"):
        selection(served("pods"), Query("fieldSelector=spec.color%3Dred"))
    with pytest.raises(StatusError, match=r'"data" is not a known field selector: only "metadata\.name"'):
        selection(served("configmaps"), Query("fieldSelector=data%3Dx"))


def test_a_pinned_name_is_seen() -> None:
    assert selection(served("pods"), Query("fieldSelector=metadata.name%3Dp")).name == "p"
    assert selection(served("pods"), Query("fieldSelector=metadata.name%21%3Dp")).name == ""
